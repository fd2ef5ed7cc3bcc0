"""The recommender as an HTTP service: Starlette on uvicorn, one process, one writer."""
