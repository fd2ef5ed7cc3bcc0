"""What RecoGym draws once per world: products, click tables, and an embedding from co-views."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lser.simulators.recogym.kernels import World, organic_log
from lser.simulators.recogym.params import Params
from lser.types import Float64


def transition_matrix(params: Params) -> Float64:
    """Probabilities (3, 3) between organic, bandit and stop."""
    leave_bandit = params.prob_leave_organic
    if params.use_prob_leave_bandit:
        leave_bandit = params.prob_leave_bandit
    to_bandit, to_organic = params.prob_organic_to_bandit, params.prob_bandit_to_organic
    organic = [1.0 - (to_bandit + params.prob_leave_organic), to_bandit, params.prob_leave_organic]
    bandit = [to_organic, 1.0 - (to_organic + leave_bandit), leave_bandit]
    return np.array([organic, bandit, [0.0, 0.0, 1.0]])


def flip(gamma: Float64, flips: int) -> NDArray[np.intp]:
    """An order (P,) of products that swaps the `flips` most correlated disjoint pairs.

    Pairs with no positive correlation are left alone, as the original ends up doing.
    """
    order = np.arange(len(gamma))
    if flips == 0:
        return order
    free = np.ones(len(gamma), np.bool_)

    def partners(rows: NDArray[np.intp]) -> tuple[NDArray[np.intp], Float64]:
        score = gamma[rows] @ gamma.T
        score[:, ~free] = -np.inf
        score[np.arange(rows.size), rows] = -np.inf
        best = score.argmax(axis=1)
        return best, score[np.arange(rows.size), best]

    blocks = [partners(rows) for rows in np.array_split(order.copy(), 1 + len(gamma) // 256)]
    partner = np.concatenate([best for best, _ in blocks])
    value = np.concatenate([score for _, score in blocks])
    while flips and value.max(initial=-np.inf) > 0.0:
        one = int(value.argmax())
        other = int(partner[one])
        if not free[other]:  # taken since: look again among those still free
            row, score = partners(np.array([one]))
            partner[one], value[one] = row[0], score[0]
            continue
        order[one], order[other] = other, one
        free[[one, other]] = False
        value[[one, other]] = -np.inf
        flips -= 1
    return order


def make_world(
    params: Params, *, gamma: ArrayLike | None = None, mu_organic: ArrayLike | None = None
) -> World:
    """The world of `params.random_seed`, the same as the original's; or with given products."""
    products, factors = params.num_products, params.K if params.version == 1 else 0
    # the legacy generator and this order of draws give the original's world, seed for seed
    rng = np.random.RandomState(params.random_seed)
    empty = np.empty((0, 0))
    view_table, click_table = empty, empty
    drawn, mu = np.empty((products, 0)), np.zeros(products)
    if params.version == 1:
        drawn = rng.normal(size=(products, factors))
        mu = rng.normal(0.0, params.sigma_mu_organic, size=products)
    else:
        size = products // params.num_clusters
        view_table = np.kron(np.eye(params.num_clusters), np.full((size, size), 1.0 / size))
        phi = rng.normal(scale=np.sqrt(params.phi_var), size=(products, products))
        score = products / 5.0 * (view_table + view_table.T) + phi
        click_table = 1.0 / (1.0 + np.exp(-(score - 5.0)))
    drawn = _given("gamma", gamma, drawn)
    mu = _given("mu_organic", mu_organic, mu)
    order = flip(drawn, params.number_of_flips)
    beta = drawn[order]
    if params.normalize_beta:
        beta = beta / np.sqrt((beta**2).sum(axis=1, keepdims=True))
    world = World(
        version=params.version,
        transition=transition_matrix(params),
        gamma=np.asfortranarray(drawn),
        mu_organic=mu,
        beta=beta,
        mu_bandit=mu[order],
        view_table=view_table,
        click_table=click_table,
        sigma_omega_initial=float(params.sigma_omega_initial),
        sigma_omega=float(params.sigma_omega),
        always_drift=bool(params.change_omega_for_bandits),
        random_time=params.time_generator == "normal",
        time_mu=float(params.normal_time_mu),
        time_sigma=float(params.normal_time_sigma),
        embedding=empty,
    )
    if "embedding" not in (params.actions, params.observation):
        return world
    return world._replace(embedding=coview_embedding(world, params))


def _given(name: str, value: ArrayLike | None, drawn: Float64) -> Float64:
    if value is None:
        return drawn
    array = np.ascontiguousarray(value, dtype=np.float64)
    if array.size != drawn.size or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite of shape {drawn.shape}, got shape {array.shape}")
    return array.reshape(drawn.shape)


def coview_embedding(world: World, params: Params) -> Float64:
    """Products (P, embedding_dim + 1) from a log of organic views: factors, and log popularity.

    Correspondence analysis of the user-by-product table of views: its leading factors are those of
    D^-1/2 C D^-1/2, C the co-view counts and D the views per product. A product viewed together
    with itself only adds the identity to this matrix, so it does not bias the factors.
    """
    rng = np.random.default_rng(params.random_seed)
    user, product = organic_log(world, params.embedding_users, rng)
    products, dim = params.num_products, params.embedding_dim
    count = np.bincount(product, minlength=products).astype(np.float64)
    weight = 1.0 / np.sqrt(np.maximum(count, 1.0))
    starts = np.flatnonzero(np.r_[True, user[1:] != user[:-1]])
    length = np.diff(np.r_[starts, user.size]).astype(np.float64)
    of_user = np.repeat(np.arange(starts.size), length.astype(np.intp))
    by_product = np.argsort(product, kind="stable")
    heads = np.flatnonzero(np.r_[True, np.diff(product[by_product]) != 0])
    viewed = product[by_product][heads]
    trivial = np.sqrt(count / count.sum())[:, None]

    def apply(basis: Float64) -> Float64:
        taste = np.add.reduceat((basis * weight[:, None])[product], starts) / length[:, None]
        result = np.zeros_like(basis)
        result[viewed] = np.add.reduceat(taste[of_user][by_product], heads)
        result *= weight[:, None]
        return np.asarray(result - trivial * (trivial.T @ result))

    basis = rng.standard_normal((products, min(products, dim + 8)))
    for _ in range(10):  # subspace iteration
        basis = np.linalg.qr(apply(basis))[0]
    small = basis.T @ apply(basis)
    vectors = basis @ np.linalg.eigh((small + small.T) / 2)[1][:, ::-1][:, :dim]
    vectors *= np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
    factors = vectors * (weight * count / (count + 5.0))[:, None]  # rarely viewed: towards 0
    popularity = np.log1p(count)[:, None]
    columns = np.hstack([factors, popularity - popularity.mean()])
    return np.asarray(columns / np.maximum(np.sqrt((columns**2).mean(axis=0)), 1e-12))
