# Every target sets the machine up first; ./bootstrap.sh is quick when there is nothing to do.
PYTHON = .venv/bin/python
# One more than there are cores: many tests wait for a browser, a worker or a lease.
TEST_WORKERS = $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# What a real deployment would say, so that Django's deployment checks judge one.
LIKE_PRODUCTION = env COUNTERFOIL_SECRET_KEY=$$(head -c 64 /dev/urandom | base64 -w0 2>/dev/null || head -c 64 /dev/urandom | base64) \
	COUNTERFOIL_VAR=.cache/check DATABASE_URL=postgresql://counterfoil@localhost/counterfoil \
	CELERY_BROKER_URL=amqp://localhost// COUNTERFOIL_DESK_URL=https://desk.example.com

.PHONY: demo up test check slow faultlab cases bench screenshots lock ready

demo: ready ## everything, with a provider that misbehaves and agents that meet it
	@exec $(PYTHON) manage.py demo

up: ready ## the same without the sandbox
	@exec $(PYTHON) manage.py up

test: ready ## every test once; files are dealt out to a few workers, each has its own services
	@exec $(PYTHON) -m pytest -n $(TEST_WORKERS) --dist loadfile --randomly-seed=20261130

slow: ready ## soaks and storms, and the laws with examples that no run has had
	@$(PYTHON) -m pytest -n $(TEST_WORKERS) --dist loadfile --hypothesis-profile=explore tests/laws \
		$$(git grep -lE '^from hypothesis' -- tests | grep -v '^tests/laws/')
	@exec $(PYTHON) -m pytest -m slow

check: ready ## everything but tests
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	.venv/bin/mypy .
	.venv/bin/lint-imports
	git ls-files -z --cached --others --exclude-standard 'templates/*.html' | xargs -0 -r .venv/bin/djade --target-version 6.0 --check
	$(LIKE_PRODUCTION) $(PYTHON) -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run
	$(LIKE_PRODUCTION) $(PYTHON) manage.py check --deploy --fail-level WARNING

lock: ready ## resolve requirements.lock again; needs uv
	@uv=$$(command -v uv || echo .uv/bin/uv); \
	$$uv pip compile -q --universal --generate-hashes --no-header --no-annotate \
		--python-version 3.12 pyproject.toml --group server --group dev -o requirements.lock

bench: ready ## claim and completion as a ratio to the bare PostgreSQL work of the same run
	@exec $(PYTHON) -m tests.bench

# Names of pages or how they begin, with commas: make screenshots PAGES=queue,call
PAGES =

screenshots: ready ## every page in light, dark and narrow, into var/screenshots; nothing is judged
	@exec $(PYTHON) -m tests.screenshots $(PAGES)

faultlab: ready ## what goes wrong between a model, a tool and a provider, produced for real
	@exec $(PYTHON) -m tests.faultlab

# Any folder of case files: make cases CASES=dir
CASES = tests/cases

cases: ready ## cases from bug reports: a line for each that fails, and how many passed
	@exec $(PYTHON) -m tests.cases "$(CASES)"


ready:
	@./bootstrap.sh
