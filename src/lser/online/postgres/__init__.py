"""A shop in a PostgreSQL database, which several machines share."""
