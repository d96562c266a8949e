"""Prod never echoes codes, and each API function has what sessions and limits need."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from types import ModuleType

from deploy import deploy
from local.stack import deployment
from plaza.infra.http import limits
from plaza.people.auth import caller_identity, session_lookup
from tests.unit.policy import template
from tests.unit.policy.modules import LAYER, ROOT
from tests.unit.policy.template import FUNCTION, TEMPLATE, resources


def test_the_template_refuses_to_echo_codes_outside_of_the_emulator() -> None:
    rule = TEMPLATE["Rules"]["OnlyLocalEchoesCodes"]
    assert rule["RuleCondition"] == {"Fn::Equals": [{"Ref": "SmsSender"}, "echo"]}
    [assertion] = rule["Assertions"]
    assert assertion["Assert"] == {"Fn::Equals": [{"Ref": "Environment"}, "local"]}


def test_the_sms_sender_has_no_default() -> None:
    parameter = TEMPLATE["Parameters"]["SmsSender"]
    assert parameter["AllowedValues"] == ["sns", "echo"]
    assert "Default" not in parameter


def test_a_deploy_sends_texts_by_sns() -> None:
    for environment in ("staging", "prod"):
        assert deploy.read_settings(environment).values["SmsSender"] == "sns"
    assert "echo" not in (ROOT / "samconfig.toml").read_text()
    assert "SmsSender=echo" not in (ROOT / "docs" / "operations.md").read_text()


def test_only_the_local_deployment_echoes_codes() -> None:
    source = (ROOT / "local" / "stack" / "deployment.py").read_text()
    assert '"SmsSender": "echo"' in source
    assert '"Environment": "local"' in source
    assert deployment.STACK_NAME


def _functions_with_sessions() -> set[str]:
    """Return the API functions; but those all of whose routes are public read no session."""
    return {*template.routes().values()} - {"SystemApi", "TotalsApi"}


def test_only_the_functions_that_need_them_get_the_sms_sender_and_the_secret() -> None:
    sending = {f for f in resources(FUNCTION) if "PLAZA_SMS_SENDER" in template.variables_of(f)}
    signing = {f for f in resources(FUNCTION) if "PLAZA_AUTH_SECRET_ID" in template.variables_of(f)}
    assert sending == {"AuthApi"}
    assert signing == {*_functions_with_sessions(), "RotateSecret"}


def test_only_these_functions_may_read_the_secret_and_one_may_send_texts() -> None:
    for name, function in resources(FUNCTION).items():
        policies = function.get("Policies", [])
        reads = {"AWSSecretsManagerGetSecretValuePolicy": {"SecretArn": {"Ref": "AuthSecret"}}}
        assert (reads in policies) == (name in _functions_with_sessions()), name
        assert ("sns:Publish" in str(policies)) == (name == "AuthApi"), name


def test_the_secret_is_generated_by_the_deploy_and_has_64_characters() -> None:
    secret = resources("AWS::SecretsManager::Secret")["AuthSecret"]
    assert "SecretString" not in secret
    assert secret["GenerateSecretString"]["PasswordLength"] >= 64


def test_every_api_function_gets_the_limits_and_the_lifetime_of_sessions() -> None:
    needed = {
        f"PLAZA_{name.upper()}"
        for name in _attributes_of_settings(caller_identity, limits, session_lookup)
    }
    assert {"PLAZA_SESSION_TTL_S", "PLAZA_SESSION_MAX_AGE_S", "PLAZA_READS_PER_S"} < needed
    for name in set(template.routes().values()):
        assert needed <= template.variables_of(name), name


def _attributes_of_settings(*modules: ModuleType) -> set[str]:
    """Return the names of the settings that the modules read."""
    text = "".join(inspect.getsource(module) for module in modules)
    return set(re.findall(r"(?:config|settings\(\))\.(\w+)", text))


def test_the_countries_of_texts_have_no_default() -> None:
    parameter = TEMPLATE["Parameters"]["SmsCountries"]
    assert "Default" not in parameter
    assert "PLAZA_SMS_COUNTRIES" in template.variables_of("AuthApi")


def test_a_function_that_identifies_callers_loads_no_module_that_only_sign_in_needs() -> None:
    app = template.folder_of("ReactionsApi")
    unwanted = "phonenumbers plaza.people.users plaza.people.auth.phone plaza.people.auth.sms"
    code = (
        "import sys; import app;"
        f"print([m for m in sys.modules if m.startswith({tuple(unwanted.split())})])"
    )
    env = os.environ | {"PYTHONPATH": f"{LAYER}{os.pathsep}{app}"}
    completed = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert completed.stdout.strip() == "[]"
