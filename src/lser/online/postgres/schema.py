"""The tables of a shop and the one function that writes its log.

The row of `head` orders everything: whoever appends locks it, numbers its events from it and lets
go at the commit, so that numbers have no gaps and become visible in their order. `writer` holds
the last group of every writer: a group that is sent again, because the connection broke before
the answer came, is answered from there and not written twice.
"""

import psycopg

from lser.online.event_reader import COMMON

VERSION = 1
LEASE_LOST = "LS001"
OUT_OF_TURN = "LS002"
_KEY = 7_310_579_514  # of the advisory lock under which the tables are made
_TABLES = f"""
create table if not exists head(
  one boolean primary key default true check (one),
  seq bigint not null, at double precision not null, version int not null)
  with (fillfactor = 10);
insert into head values(true, 0, 0, {VERSION}) on conflict do nothing;
create table if not exists event(
  seq bigint primary key, at double precision not null, kind text not null, id text,
  body bytea not null);
alter table event alter column body set storage external;
create unique index if not exists event_id on event(kind, id) where id is not null;
create index if not exists event_kind on event(kind, seq) where kind not in {COMMON};
create table if not exists writer(
  name text primary key, batch bigint not null, seqs bigint[] not null, fresh boolean[] not null,
  used timestamptz not null default now()) with (fillfactor = 10);
create table if not exists lease(
  one boolean primary key default true check (one),
  token bigint not null, holder text not null, until timestamptz not null)
  with (fillfactor = 10);
insert into lease values(true, 0, '', '-infinity') on conflict do nothing;
create table if not exists file(
  room text not null, number bigint not null, body bytea not null, primary key (room, number));
alter table file alter column body set storage external;
create table if not exists status(one boolean primary key default true check (one), body bytea);
insert into status values(true, null) on conflict do nothing;
"""
_FENCE = f"""
create or replace function fence(p_token bigint) returns void language plpgsql as $$
begin
  if p_token is not null then
    perform 1 from lease where token = p_token for share;  -- nobody takes over until the commit
    if not found then
      raise exception 'the lease %% is lost', p_token using errcode = '{LEASE_LOST}';
    end if;
  end if;
end $$;
""".replace("%%", "%")
_APPEND = f"""
create or replace function append(
  p_writer text, p_batch bigint, p_token bigint, p_now double precision, p_since bigint,
  p_kinds text[], p_ids text[], p_bodies bytea[])
returns table(place int, seq bigint, at double precision, kind text, id text, body bytea)
language plpgsql as $$
#variable_conflict use_column
declare
  v_seq bigint; v_at double precision; v_found bigint; v_batch bigint;
  v_seqs bigint[] := '{{}}'; v_fresh boolean[] := '{{}}';
begin
  perform fence(p_token);
  select head.seq, greatest(head.at, p_now) into v_seq, v_at from head for update;
  select w.batch, w.seqs, w.fresh into v_batch, v_seqs, v_fresh from writer w
    where w.name = p_writer;
  if v_batch > p_batch then
    raise exception 'group %, after group %', p_batch, v_batch using errcode = '{OUT_OF_TURN}';
  elsif v_batch is distinct from p_batch then
    v_seqs := '{{}}';
    v_fresh := '{{}}';
    for i in 1 .. cardinality(p_kinds) loop
      v_found := null;
      if p_ids[i] is not null then
        select e.seq into v_found from event e where e.kind = p_kinds[i] and e.id = p_ids[i];
      end if;
      v_fresh[i] := v_found is null;
      if v_found is null then
        v_seq := v_seq + 1;
        v_found := v_seq;
        insert into event values(v_seq, v_at, p_kinds[i], p_ids[i], p_bodies[i]);
      end if;
      v_seqs[i] := v_found;
    end loop;
    update head set seq = v_seq, at = v_at;
    insert into writer values(p_writer, p_batch, v_seqs, v_fresh)
      on conflict (name) do update set
        batch = p_batch, seqs = v_seqs, fresh = v_fresh, used = now();
  end if;
  -- what stands under each entry: minus its place where it is new, with its body where it is not
  return query
    select case when own.fresh then -own.place else own.place end::int, e.seq, e.at, e.kind, e.id,
      case when own.fresh then null else e.body end
    from unnest(v_seqs, v_fresh) with ordinality as own(seq, fresh, place)
    join event e on e.seq = own.seq order by own.place;
  if p_since is not null then  -- and what others have written since
    return query
      select 0, e.seq, e.at, e.kind, e.id, e.body from event e
      where e.seq > p_since and e.seq <= v_seq
        and e.seq not in (select own.seq from unnest(v_seqs, v_fresh) as own(seq, fresh)
                          where own.fresh)
      order by e.seq;
  end if;
end $$;
"""


def install(connection: psycopg.Connection) -> None:
    """Make what is missing; ValueError where a later release has made it."""
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(%s)", (_KEY,))
        if not installed(connection):
            schema = connection.execute("select current_setting('search_path')").fetchone()
            assert schema is not None
            first = schema[0].split(",")[0].strip().strip('"')
            connection.execute(f'create schema if not exists "{first}"')
            connection.execute(_TABLES)
        found = connection.execute("select version from head").fetchone()
        if found is not None and found[0] > VERSION:
            raise ValueError(f"the log has version {found[0]}; this release writes {VERSION}")
        connection.execute(_FENCE)
        connection.execute(_APPEND)
        connection.execute("delete from writer where used < now() - interval '2 days'")


def installed(connection: psycopg.Connection) -> bool:
    """Whether the tables are there."""
    found = connection.execute("select to_regclass('head') is not null").fetchone()
    return bool(found and found[0])
