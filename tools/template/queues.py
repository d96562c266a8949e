"""The queues that modules declare: with their DLQs, mappings, and the dashboard's list of DLQs."""

from typing import Any

from local.stack.queue_registry import load_queues
from plaza.infra.queues.dead_letters import dlq_of
from plaza.infra.queues.queue import Queue

_DLQ_RETENTION_S = 14 * 86_400  # the maximum


def name_queue(name: str) -> str:
    """Return the logical id of a queue: ``OrdersDlq`` for ``orders_dlq``."""
    words = "".join(word.capitalize() for word in name.split("_"))
    return words if name.endswith("_dlq") else f"{words}Queue"


def list_names() -> list[str]:
    """Return the names of all queues, each followed by its DLQ."""
    return sorted({name for queue in load_queues() for name in (queue, dlq_of(queue))})


def make_queues() -> dict[str, Any]:
    """Return all queues."""
    queues = load_queues()
    return {
        name_queue(name): _make_queue(queues[name]) if name in queues else _make_dlq(name)
        for name in list_names()
    }


def make_queue_policy() -> dict[str, Any]:
    """Return the policy of all queues, which only denies: roles allow."""
    deny = {
        "Sid": "OnlyWithTls",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "sqs:*",
        "Resource": "*",  # of a queue's policy: that queue
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    return {
        "Type": "AWS::SQS::QueuePolicy",
        "Properties": {
            "Queues": [{"Ref": name_queue(name)} for name in list_names()],
            "PolicyDocument": {"Version": "2012-10-17", "Statement": [deny]},
        },
    }


def make_mapping(function: str, queue: Queue[Any]) -> dict[str, Any]:
    """Return what makes Lambda invoke a function for the messages of a queue."""
    window = {"MaximumBatchingWindowInSeconds": queue.window_s} if queue.window_s else {}
    return {
        "Type": "AWS::Lambda::EventSourceMapping",
        "Properties": {
            "FunctionName": {"Ref": function},
            "EventSourceArn": {"Fn::GetAtt": f"{name_queue(queue.name)}.Arn"},
            "BatchSize": queue.batch_size,
            **window,
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "ScalingConfig": {"MaximumConcurrency": queue.max_concurrency},
        },
    }


def list_dead_letters() -> dict[str, Any]:
    """Return the metrics of a widget, the dead letters of each queue, as an argument of Fn::Sub."""
    start = '["AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", "${'
    lines = [
        {"Fn::Sub": f'{start}{name_queue(dlq_of(queue))}.QueueName}}"]'}
        for queue in sorted(load_queues())
    ]
    return {"DeadLetters": {"Fn::Join": [", ", lines]}}


def _make_queue(queue: Queue[Any]) -> dict[str, Any]:
    redrive = {
        "deadLetterTargetArn": {"Fn::GetAtt": f"{name_queue(dlq_of(queue.name))}.Arn"},
        "maxReceiveCount": queue.retry.max_receives,
    }
    return {
        "Type": "AWS::SQS::Queue",
        "Properties": {
            "QueueName": _name_in_aws(queue.name),
            "VisibilityTimeout": queue.visibility_s,
            "MessageRetentionPeriod": queue.retention_days * 86_400,
            "SqsManagedSseEnabled": True,
            "RedrivePolicy": redrive,
            **_allow_redrive(queue.name),
        },
    }


def _make_dlq(name: str) -> dict[str, Any]:
    return {
        "Type": "AWS::SQS::Queue",
        "Properties": {
            "QueueName": _name_in_aws(name),
            "MessageRetentionPeriod": _DLQ_RETENTION_S,
            "SqsManagedSseEnabled": True,
            **_allow_redrive(name),
        },
    }


def _allow_redrive(dlq: str) -> dict[str, Any]:
    """Return which queues may name a queue as their DLQ: by default each one of the account.

    By name, because a queue refers to its DLQ and CloudFormation follows no circle."""
    arn = "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:${AWS::StackName}-"
    sources = [{"Fn::Sub": arn + name} for name in sorted(load_queues()) if dlq_of(name) == dlq]
    policy = {"redrivePermission": "byQueue", "sourceQueueArns": sources}
    return {"RedriveAllowPolicy": policy} if sources else {}


def _name_in_aws(name: str) -> dict[str, Any]:
    return {"Fn::Sub": f"${{AWS::StackName}}-{name}"}
