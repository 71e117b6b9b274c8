PYTHON ?= python3
BIN := .venv/bin
MINUTES ?= 3
RUN ?= first
JOBS ?= 2

.PHONY: setup train test check format

setup: ## make .venv with pinned dependencies (skipped when it is right)
	@$(PYTHON) tools/setup_venv.py

train: setup ## train and evaluate an OFC agent (MINUTES=3, RUN=first)
	@$(BIN)/maple train ofc --minutes $(MINUTES) --run $(RUN)

test: setup ## run the tests, JOBS=2 processes of them
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --max-worker-restart 0

check: setup ## format, lint, types (here, on Windows, on macOS), layers
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/mypy --platform win32
	@$(BIN)/mypy --platform darwin
	@$(BIN)/lint-imports
	@$(BIN)/python tools/check_bridge.py
	@$(BIN)/python tools/describe_schema.py --check

format: setup ## bring the code into shape
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .
