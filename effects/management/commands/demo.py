"""`manage.py demo`: `up`, with a provider that misbehaves on purpose and agents that meet it."""

import os
from dataclasses import replace
from typing import Any, override

from effects.local import stack
from effects.management.commands import up

# No secrets: the sandbox on loopback knows every account by its name. The workers, which ask it
# what became of a call, find them where a real secret would be.
SANDBOX_SECRETS = {
    "COUNTERFOIL_SANDBOX_STRIPE_KEY": "rk_test_halden",
    "COUNTERFOIL_SANDBOX_PLAIN_TOKEN": "plain_halden",
    "COUNTERFOIL_SANDBOX_WEBHOOK_SECRET": "whsec_halden",
}


class Command(up.Command):
    help = "Start everything, and beside it a sandbox with real traffic."

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        os.environ.update(SANDBOX_SECRETS)
        self.keep_up(sandbox)


def sandbox(plan: stack.Plan) -> up.Extras:
    """Return the sandbox's programs: data first, then the provider, then the agents."""
    port = plan.sandbox_port
    provider = stack.manage(plan, "provider", "sandbox", "provider", "--port", str(port))
    return up.Extras(
        seed=stack.manage(plan, "seed", "sandbox", "seed"),
        doors=(replace(provider, ready=stack.listens(port)),),
        visitors=(stack.manage(plan, "agents", "sandbox", "agents"),),
    )
