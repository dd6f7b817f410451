"""A refused feature is named, with what it means, and everything else goes on."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from kernel_smith.evaluation.sandbox.confine import (
    apply,
    environment,
    kernel,
    landlock,
    limits,
    mounts,
    namespaces,
    privileges,
    seccomp,
)

ALL_NAMESPACES = (
    *(namespaces.MOUNT, namespaces.NETWORK, namespaces.IPC, namespaces.UTS, namespaces.PID),
)
CONSEQUENCES = {
    "unshare": (*ALL_NAMESPACES, mounts.SCRATCH, mounts.OWN_TABLE),
    "mount": (mounts.SCRATCH, mounts.OWN_TABLE),
    "mount_setattr": (mounts.READ_ONLY,),
    "landlock_create_ruleset": (landlock.FILES,),
    "landlock_restrict_self": (landlock.FILES,),
    "seccomp": (seccomp.FEATURE,),
    "capset": (privileges.CAPABILITIES,),
}
PR_SET_NO_NEW_PRIVS = 38
# What each version of Landlock is the first to know.
NEWER_RIGHTS = dict(
    enumerate(("truncation rules", landlock.TCP, "device control rules", landlock.SCOPES), start=3)
)


def missing_features(outcome):
    return {line.split(":")[0] for line in outcome.report.missing}


def unknown_to(abi):
    return {feature for since, feature in NEWER_RIGHTS.items() if since > abi}


def write_and_return():
    Path("file").write_text("text")
    return "ran"


@pytest.mark.parametrize("call", CONSEQUENCES)
def test_a_refused_system_call_is_reported_and_the_rest_goes_on(confined, refuse, call):
    refuse(call)
    outcome = confined.run(write_and_return)
    assert outcome.value == "ran"
    expected = set(CONSEQUENCES[call])
    assert expected <= missing_features(outcome)
    assert expected.isdisjoint(outcome.report.enforced)


def test_without_any_system_call_everything_is_reported_and_the_function_runs(confined, refuse):
    used_by_the_test_itself = (1, 4)  # PR_SET_PDEATHSIG, PR_SET_DUMPABLE

    def everything(name, *arguments):
        return name != "prctl" or arguments[0] not in used_by_the_test_itself

    refuse(*CONSEQUENCES, "prctl", only=everything)
    outcome = confined.run(write_and_return)
    assert outcome.value == "ran"
    expected = {feature for features in CONSEQUENCES.values() for feature in features}
    expected -= {mounts.READ_ONLY}  # part of the mount table
    expected |= {privileges.NO_NEW_PRIVILEGES, privileges.BOUNDING_SET}
    assert expected <= missing_features(outcome)


def test_every_missing_feature_says_what_is_not_enforced_and_why(confined, refuse):
    refuse(*CONSEQUENCES)
    for line in confined.run(lambda: None).report.missing:
        feature, explanation = line.split(": ", 1)
        assert feature
        assert explanation.endswith(")")
        assert len(explanation.split(" (")[0].split()) >= 4


def test_without_no_new_privileges_neither_rules_nor_filter_claim_to_work(confined, refuse):
    refuse("prctl", only=lambda _, option, *others: option == PR_SET_NO_NEW_PRIVS)
    outcome = confined.run(lambda: "ran", privileges.CAPABILITIES)
    assert outcome.value == "ran"
    expected = {privileges.NO_NEW_PRIVILEGES, landlock.FILES, seccomp.FEATURE}
    assert expected <= missing_features(outcome)


@pytest.mark.parametrize("abi", range(1, 7))
def test_an_older_landlock_enforces_what_it_knows_and_names_what_it_does_not(
    confined, monkeypatch, open_folder, abi
):
    monkeypatch.setattr(landlock, "abi", lambda: abi)
    secret = open_folder / "secret"
    secret.touch()

    def attempt():
        try:
            return secret.read_text()
        except PermissionError:
            return "refused"

    outcome = confined.run(attempt, landlock.FILES)
    assert outcome.value == "refused"
    assert missing_features(outcome) & set(NEWER_RIGHTS.values()) == unknown_to(abi)


def test_a_core_that_does_not_exist_is_reported(confined):
    outcome = confined.run(lambda: "ran", cores=frozenset({1 << 14}))
    assert outcome.value == "ran"
    assert apply.AFFINITY in missing_features(outcome)


def test_root_falls_back_to_nobody_where_few_users_are_mapped(confined, monkeypatch):
    if confined.user != 0:
        pytest.skip("needs root")
    monkeypatch.setattr(privileges, "_is_mapped", lambda _, identifier: identifier < 65536)
    assert confined.value(os.getuid, privileges.USER_ID) == 65534


def test_root_without_any_other_user_is_reported(confined, monkeypatch):
    if confined.user != 0:
        pytest.skip("needs root")
    monkeypatch.setattr(privileges, "_is_mapped", lambda *_: False)
    outcome = confined.run(write_and_return)
    assert outcome.value == "ran"
    assert privileges.USER_ID in missing_features(outcome)


def test_a_user_that_cannot_be_changed_is_reported(confined, monkeypatch):
    if confined.user != 0:
        pytest.skip("needs root")

    def refused(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "setresuid", refused)
    outcome = confined.run(lambda: "ran")
    assert outcome.value == "ran"
    assert privileges.USER_ID in missing_features(outcome)


def test_root_without_administrative_rights_uses_a_user_namespace(confined):
    """As in many containers: uid 0, but no CAP_SYS_ADMIN."""
    if confined.user != 0:
        pytest.skip("needs root")

    def prepare():
        # What containers leave: CAP_DAC_READ_SEARCH, SETGID, SETUID, SETPCAP, SETFCAP
        privileges._reduce_capabilities(sum(1 << bit for bit in (2, 6, 7, 8, 31)), 0)

    outcome = type(confined)(confined.policy, prepare, 0).run(write_and_return, namespaces.USER)
    assert outcome.value == "ran"
    assert set(ALL_NAMESPACES) <= set(outcome.report.enforced)
    assert missing_features(outcome) == {privileges.USER_ID} | unknown_to(landlock.abi())


def test_an_unsupported_architecture_is_reported(confined, monkeypatch):
    monkeypatch.setattr(seccomp, "_MACHINE", None)
    assert seccomp.FEATURE in missing_features(confined.run(lambda: None))


def test_an_environment_that_cannot_be_erased_is_reported(confined, monkeypatch):
    def unreadable(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(environment, "_erase_initial_block", unreadable)
    assert environment.FEATURE in missing_features(confined.run(lambda: None))


def test_unknown_memory_use_leaves_the_limit_to_the_monitor(confined, monkeypatch):
    real = kernel.status_field
    monkeypatch.setattr(
        kernel, "status_field", lambda name, *task: None if name == "VmData" else real(name, *task)
    )
    assert limits.DATA in missing_features(confined.run(lambda: None))


def test_a_system_call_that_the_kernel_refuses_raises_with_its_name():
    with pytest.raises(OSError, match="setns") as refusal:
        kernel.call("setns", -1, 0)
    assert refusal.value.errno == errno.EBADF
