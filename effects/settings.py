"""All settings, from the environment. Nothing set means the embedded services of `manage.py up`.

What each variable means is in `docs/operating.md`; `effects.checks` says what is wrong with one.
"""

import os
from pathlib import Path
from typing import Any

from django.utils.csp import CSP
from whitenoise.compress import Compressor

from effects.environment import read_environment, with_running_services
from effects.local.postgres import PLACEHOLDER_URL
from effects.local.secret import kept_secret
from effects.mail import from_environment as mail_from_environment
from effects.postgres_url import database_settings

BASE_DIR = Path(__file__).resolve().parent.parent

_var = read_environment(os.environ, base=BASE_DIR).var
_values = with_running_services(os.environ, _var)
ENVIRONMENT = read_environment(_values, base=BASE_DIR)

COUNTERFOIL_VAR = ENVIRONMENT.var
COUNTERFOIL_DESK_URL = ENVIRONMENT.desk_url
COUNTERFOIL_API_URL = ENVIRONMENT.api_url
COUNTERFOIL_SANDBOX_PORT = ENVIRONMENT.sandbox_port
# Providers are asked at public addresses only. These origins may lie in the own network, and speak
# plain HTTP: the sandbox, and whatever the operator names.
COUNTERFOIL_PRIVATE_ORIGINS = [
    f"http://127.0.0.1:{COUNTERFOIL_SANDBOX_PORT}",
    *ENVIRONMENT.private_origins,
]

# Made up and kept on a single machine; `effects.checks` warns where there may be several.
SECRET_KEY = ENVIRONMENT.secret_key or kept_secret(COUNTERFOIL_VAR / "secret_key")
# What people enter as a secret is sealed in the database; losing these keys loses those secrets.
COUNTERFOIL_SEALING_KEYS = ENVIRONMENT.sealing_keys or (SECRET_KEY,)

DEBUG = ENVIRONMENT.debug
_https = COUNTERFOIL_DESK_URL.startswith("https://")
_desk_host = COUNTERFOIL_DESK_URL.split("//", 1)[1].split("/", 1)[0].rsplit(":", 1)[0]
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", _desk_host, *ENVIRONMENT.hosts]
CSRF_TRUSTED_ORIGINS = [COUNTERFOIL_DESK_URL]

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django_htmx",
    "channels",
    "ninja",
    "effects",
    "ledger",
    "reconcile",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "effects.urls"
WSGI_APPLICATION = "effects.wsgi.application"
ASGI_APPLICATION = "effects.asgi.application"
COUNTERFOIL_SOCKET_URLS = ["reconcile.sockets.urlpatterns"]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

# A thread of the api door keeps its connection; the desk door lives in short-lived threads and
# would only collect dead ones, so its entry point says 0.
DATABASES: dict[str, dict[str, Any]] = {
    "default": database_settings(
        ENVIRONMENT.database_url or PLACEHOLDER_URL, keep_seconds=ENVIRONMENT.connection_seconds
    )
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

SESSION_ENGINE = "effects.sessions"
PASSWORD_RESET_TIMEOUT = 3 * 24 * 3600  # How long the link of a new member opens anything.
_mail = mail_from_environment()
COUNTERFOIL_MAIL = bool(_mail)
globals().update(_mail)
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

# Django's default is America/Chicago and leaks into the TZ of every child process.
TIME_ZONE = "UTC"
USE_TZ = True
LANGUAGE_CODE = "en-gb"
USE_I18N = False

STATIC_URL = "/static/"
STATIC_ROOT = COUNTERFOIL_VAR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "effects.static_storage.GzippedManifestStorage"},
}
WHITENOISE_KEEP_ONLY_HASHED_FILES = True
WHITENOISE_SKIP_COMPRESS_EXTENSIONS = [*Compressor.SKIP_COMPRESS_EXTENSIONS, "map"]

# Text written by a model reaches these pages. With this policy not even a template mistake runs it.
SECURE_CSP = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF, "data:"],
    "font-src": [CSP.SELF],
    "connect-src": [CSP.SELF],
    "base-uri": [CSP.NONE],
    "form-action": [CSP.SELF],
    "frame-ancestors": [CSP.NONE],
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = _https
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]  # Asked over plain HTTP from the inside.
if _https:
    # TLS ends at a proxy, which must set this header itself and drop one that a visitor sends.
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_HSTS_SECONDS = 31_536_000
# Subdomains and preload lists bind a whole domain: its owner says so at the proxy, not this desk.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

CELERY_BROKER_URL = ENVIRONMENT.broker_url or "redis://127.0.0.1:63790/0"
# Where all workers count their questions to a provider together; "" with another kind of broker.
COUNTERFOIL_VALKEY_URL = ENVIRONMENT.redis_url or (
    CELERY_BROKER_URL if CELERY_BROKER_URL.startswith("redis") else ""
)
CELERY_IMPORTS = (
    "reconcile.assign.tasks",
    "reconcile.bulk.tasks",
    "reconcile.connecting.tasks",
    "reconcile.duplicates.tasks",
    "reconcile.exposure.tasks",
    "reconcile.notify.tasks",
    "reconcile.outbox.tasks",
    "reconcile.registry.tasks",
    "reconcile.retention.tasks",
)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_TIME_LIMIT = 300
CELERY_TASK_SOFT_TIME_LIMIT = 240
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A broker may be away for longer than a hundred tries take; a worker that gave up would need hands.
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
# A killed worker's task comes back after this long; it must outlive the longest task. The default
# (an hour, looked at every hundred restores) would be longer than some keys live.
CELERY_BROKER_TRANSPORT_OPTIONS = (
    {"visibility_timeout": 2 * CELERY_TASK_TIME_LIMIT, "unacked_restore_throttle": 1}
    if CELERY_BROKER_URL.startswith("redis")
    else {}
)
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULE_FILENAME = str(COUNTERFOIL_VAR / "beat.db")
CELERY_BEAT_SCHEDULER = "effects.celery:SeenScheduler"
CELERY_BEAT_SCHEDULE: dict[str, dict[str, Any]] = {
    "tick": {"task": "effects.tasks.tick", "schedule": 5.0, "options": {"expires": 30}},
    # A tick that waited behind others is not worth running: the next one does its work.
    "reconcile": {"task": "reconcile.tasks.tick", "schedule": 1.0, "options": {"expires": 5}},
    "webhooks": {"task": "reconcile.tasks.webhooks", "schedule": 1.0, "options": {"expires": 5}},
    "bulks": {"task": "reconcile.bulk.tasks.sweep", "schedule": 15.0, "options": {"expires": 15}},
    "duplicates": {
        "task": "reconcile.duplicates.tasks.search",
        "schedule": 30.0,
        "options": {"expires": 30},
    },
    "exposure": {
        "task": "reconcile.exposure.tasks.roll",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "notifications": {
        "task": "reconcile.notify.tasks.tick",
        "schedule": 60.0,
        "options": {"expires": 55},
    },
    "messages": {
        "task": "reconcile.notify.tasks.hand_out",
        "schedule": 5.0,
        "options": {"expires": 5},
    },
    "outbox": {"task": "reconcile.outbox.tasks.tick", "schedule": 1.0, "options": {"expires": 5}},
    "connections": {
        "task": "reconcile.connecting.tasks.tick",
        "schedule": 15.0,
        "options": {"expires": 15},
    },
    "registry": {
        "task": "reconcile.registry.tasks.measure",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "retention": {
        "task": "reconcile.retention.tasks.tick",
        "schedule": 300.0,
        "options": {"expires": 300},
    },
    "windows": {
        "task": "reconcile.outbox.tasks.windows",
        "schedule": 15.0,
        "options": {"expires": 30},
    },
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    # A claim that is not granted is a 409 and no fault of anybody's; Django would warn of each.
    "loggers": {"django.request": {"level": "ERROR"}},
}
