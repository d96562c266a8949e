"""A restore of MySQL is a parameter of the data stack, and no update deletes a store by it."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from typing import Any

import pytest

from cli.paths import ROOT, TOOLS
from tests.support.stack_update import REGION, Stack, compare, references
from tests.unit.policy.template import load_template
from tests.unit.policy.test_processed_template import TRANSFORM, processed, read_processed

CLUSTER = "AWS::RDS::DBCluster"
STATEFUL = {CLUSTER, "AWS::ElastiCache::ReplicationGroup", "AWS::SecretsManager::Secret"}
COPIED_SECRETS = {"AuthSecret", "PushKey", "WebhookKey"}
MADE_AGAIN = {"CanarySecret", "IssuerKeys", "OriginSecret"}
KEPT = {"Retain", "RetainExceptOnCreate", "Snapshot"}
SNAPSHOT = {
    "MysqlRestoreFrom": "arn:aws:rds:eu-central-1:111122223333:cluster-snapshot:awsbackup:job-1a2b"
}
MOMENT = {
    "MysqlRestoreFrom": "plaza-prod-data-mysql-1a2b",
    "MysqlRestoreTime": "2026-11-21T08:30:00Z",
}
LATEST = MOMENT | {"MysqlRestoreTime": "latest"}
every_source = pytest.mark.parametrize(
    "source", [SNAPSHOT, MOMENT, LATEST], ids=["snapshot", "moment", "latest"]
)


@cache
def template() -> dict[str, Any]:
    """The data stack's template after the transform of SAM."""
    completed = subprocess.run(
        [TOOLS / "python", TRANSFORM],
        input=(ROOT / "deploy" / "data.yaml").read_text(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    document: dict[str, Any] = json.loads(completed.stdout)
    return document


def stack(**parameters: str) -> Stack:
    return Stack(template(), {"Environment": "prod", **parameters})


def stateful(names: set[str]) -> set[str]:
    return {name for name in names if template()["Resources"][name]["Type"] in STATEFUL}


def test_an_own_mysql_deletes_the_cluster() -> None:
    """The comparison sees what the parameters of a restore must not do."""
    own = {"MysqlUrl": "mysql://db.example/plaza", "MysqlSecretArn": "arn:a"}
    update = compare(stack(), stack(**own))
    assert {"Mysql", "MysqlAppSecret", "MysqlMigratorSecret"} <= stateful(update.deleted)
    assert "OwnMysqlHasSecrets" in stack(**own).broken_rules()


@every_source
def test_a_restore_adds_a_cluster_and_moves_the_instances(source: dict[str, str]) -> None:
    update = compare(stack(), stack(**source))
    assert update.created == {"MysqlRestored"}
    assert update.deleted == set()
    assert update.replaced == {"MysqlWriter", "MysqlReader"}
    assert stateful(update.changed) == set(), "same secrets, same Redis"


@every_source
def test_a_later_deploy_with_the_same_parameters_changes_nothing(source: dict[str, str]) -> None:
    update = compare(stack(**source), stack(**source, MysqlMaxCapacity="32"))
    assert (update.created, update.deleted, update.replaced) == (set(), set(), set())
    assert update.changed == {"Mysql", "MysqlRestored"}


@every_source
def test_without_the_parameter_both_clusters_stay(source: dict[str, str]) -> None:
    update = compare(stack(**source), stack())
    assert update.deleted == {"MysqlRestored"}
    assert stateful(update.replaced) == set()
    assert template()["Resources"]["MysqlRestored"]["DeletionPolicy"] in KEPT


def test_a_restore_of_the_restored_cluster_keeps_it() -> None:
    update = compare(stack(**SNAPSHOT), stack(**LATEST))
    assert stateful(update.replaced) == {"MysqlRestored"}
    assert template()["Resources"]["MysqlRestored"]["UpdateReplacePolicy"] in KEPT
    assert update.deleted == set()


@every_source
def test_all_that_served_the_first_cluster_serves_the_restored_one(source: dict[str, str]) -> None:
    restored = stack(**source).resources
    assert [name for name, item in restored.items() if "Mysql" in references(item)] == []
    before = {name for name, item in stack().resources.items() if "Mysql" in references(item)}
    after = {name for name, item in restored.items() if "MysqlRestored" in references(item)}
    assert before == after
    assert {"MysqlWriter", "MysqlUrlParameter", "MysqlAdminSecretArnParameter"} <= after


def test_a_restored_cluster_is_as_the_first_but_for_its_source() -> None:
    resources = stack(**SNAPSHOT).resources
    first, restored = (resources[name]["Properties"] for name in ("Mysql", "MysqlRestored"))
    of_backup = {"DatabaseName", "MasterUsername", "StorageEncrypted"}  # RDS refuses others
    assert restored == {k: v for k, v in first.items() if k not in of_backup} | {
        "SnapshotIdentifier": SNAPSHOT["MysqlRestoreFrom"]
    }


@pytest.mark.parametrize(
    ("source", "given"),
    [
        (MOMENT, {"RestoreToTime": "2026-11-21T08:30:00Z"}),
        (LATEST, {"UseLatestRestorableTime": True}),
    ],
)
def test_a_moment_of_a_cluster_is_restored(source: dict[str, str], given: dict[str, Any]) -> None:
    properties = stack(**source).resources["MysqlRestored"]["Properties"]
    sources = ("SnapshotIdentifier", "RestoreToTime", "UseLatestRestorableTime")
    assert {name: properties[name] for name in sources if name in properties} == given
    assert properties["SourceDBClusterIdentifier"] == source["MysqlRestoreFrom"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"MysqlRestoreTime": "latest"},
        SNAPSHOT | {"MysqlUrl": "mysql://db.example/plaza"},
    ],
)
def test_parameters_that_restore_nothing_are_refused(wrong: dict[str, str]) -> None:
    assert stack(**wrong).broken_rules()
    assert not stack(**SNAPSHOT).broken_rules()


def test_another_database_gets_users_and_schema() -> None:
    """A restored one has the logins and the schema of its backup, and the code may be the same."""
    steps = {
        item["Type"]: item["Properties"]["Mysql"]
        for item in processed().values()
        if item["Type"].startswith("Custom::") and "Mysql" in item["Properties"]
    }
    assert set(steps) == {"Custom::DatabaseUsers", "Custom::Migration"}
    assert set(map(json.dumps, steps.values())) == {'{"Ref": "MysqlUrl"}'}


# ---------------------------------------------------------------- a second region


def test_copies_in_a_second_region_change_no_store() -> None:
    update = compare(stack(), stack(SecondRegion="eu-west-1"))
    assert (update.deleted, update.replaced, update.changed) == (set(), set(), set())
    assert update.created == {
        "BackupBoundary", "BackupCopyAlarm", "BackupPlan", "BackupRole", "BackupSelection",
        "BackupVault",
    }  # fmt: skip


def test_copies_go_to_the_names_of_the_stack_in_the_second_region() -> None:
    there = {"Environment": "prod"}
    second = Stack(load_template((ROOT / "deploy" / "second-region.yaml").read_text()), there)
    vault, bucket = (
        second.resources[name]["Properties"][key]["Fn::Sub"].replace(REGION, "eu-west-1")
        for name, key in (("BackupVault", "BackupVaultName"), ("Archive", "BucketName"))
    )
    resources = stack(SecondRegion="eu-west-1").resources
    [rule] = resources["BackupPlan"]["Properties"]["BackupPlan"]["BackupPlanRule"]
    [copy] = rule["CopyActions"]
    assert copy["DestinationBackupVaultArn"] == {
        "Fn::Sub": f"arn:aws:backup:eu-west-1:111122223333:backup-vault:{vault}"
    }
    application = Stack(read_processed(), {**there, "SecondRegion": "eu-west-1"}).resources
    replication = application["LogArchive"]["Properties"]["ReplicationConfiguration"]
    [rule] = replication["Rules"]
    assert rule["Destination"]["Bucket"] == {"Fn::Sub": f"arn:aws:s3:::{bucket}"}
    [*_, allowed] = application["ArchiveCopyPolicy"]["Properties"]["PolicyDocument"]["Statement"]
    assert allowed["Resource"] == {"Fn::Sub": f"arn:aws:s3:::{bucket}/*"}


def test_the_lock_keeps_no_copy_for_longer_than_it_is_wanted() -> None:
    """AWS Backup refuses a copy that is to be deleted earlier."""
    second = load_template((ROOT / "deploy" / "second-region.yaml").read_text())["Parameters"]
    kept = template()["Parameters"]["BackupCopyDays"]
    assert second["MinBackupDays"]["Default"] <= kept["MinValue"] <= kept["Default"]


def test_an_application_copies_its_archive_and_secrets_to_the_second_region_only_if_asked() -> None:
    before, after = (
        Stack(read_processed(), {"Environment": "prod", "SecondRegion": region})
        for region in ("none", "eu-west-1")
    )
    update = compare(before, after)
    assert (update.deleted, update.replaced) == (set(), set())
    assert update.created == {"ArchiveCopyRole", "ArchiveCopyPolicy"}
    assert update.changed == {"LogArchive", *COPIED_SECRETS}
    for name in COPIED_SECRETS:
        replicas = after.resources[name]["Properties"]["ReplicaRegions"]
        assert replicas == [{"Region": "eu-west-1"}]


def test_each_secret_that_another_region_could_not_make_again_is_copied_and_put_back() -> None:
    secrets = {
        name
        for name, resource in read_processed()["Resources"].items()
        if resource["Type"] == "AWS::SecretsManager::Secret"
    }
    assert secrets == COPIED_SECRETS | MADE_AGAIN
    runbook = (ROOT / "docs" / "runbooks" / "region-lost.md").read_text()
    for name in COPIED_SECRETS:
        assert name in runbook
