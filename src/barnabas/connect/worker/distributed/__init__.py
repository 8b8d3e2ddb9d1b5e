"""Distributed mode: workers share connectors and tasks, whose state is in three topics.

Pure:

share           what one worker runs, or should
group_messages  what members of the worker group tell each other, as bytes
eager           assignment that stops everything first
cooperative     assignment that moves what must move
records         JSON of records; connectors, tasks and wishes as records, and
config_log      what they come to
status_log      states of connectors and tasks
offset_log      how far source partitions have been read

On a cluster:

clients         how to reach it
kafka_log       the topics, as settings name them, which all workers read whole
config_topic    the topic of configurations
store           the other two topics, and all three as the worker's `Store`
leading         what the leader does in a round
membership      a worker in its group (kafka.membership), and figures of the group's rounds

The worker:

start           puts it together
herder          what can be asked of it
leader          what it does as the leader
ticks           its one thread, on which it decides
position        where it stands
group_work      how it follows the group and the config topic
work            what it runs
task_configs    how a connector's tasks become records
zombies         older tasks of exactly-once sources
signatures, forwarding  requests between workers
"""
