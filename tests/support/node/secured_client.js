// kafkajs on a node that asks who it is: node secured_client.js SCENARIO SETTINGS
// Prints what it saw, a line a step, and judges nothing: a step that failed is seen as its error.
"use strict";

const fs = require("node:fs");
const {
  AclOperationTypes,
  AclPermissionTypes,
  AclResourceTypes,
  Kafka,
  ResourcePatternTypes,
  logLevel,
} = require("kafkajs");

const [scenario, text] = process.argv.slice(2);
const given = JSON.parse(text);
const kafka = new Kafka({
  brokers: [given.bootstrap],
  logLevel: logLevel.NOTHING,
  retry: { retries: 2 },
  ssl: { ca: [fs.readFileSync(given.ca, "utf-8")] },
  sasl: {
    mechanism: given.mechanism.toLowerCase(),
    username: given.user,
    password: given.password,
  },
});

async function saw(step, ask) {
  try {
    console.log(`${step}: ${JSON.stringify(await ask())}`);
    return true;
  } catch (error) {
    console.log(`${step}: error ${error.type || error.name} ${error.message}`);
    return false;
  }
}

async function until(ask, isEnough) {
  for (let attempt = 0; ; attempt++) {
    const found = await ask();
    if (isEnough(found) || attempt === 50) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function administer() {
  const admin = kafka.admin();
  if (!(await saw("connect", () => admin.connect()))) return;
  const acl = {
    resourceType: AclResourceTypes.TOPIC,
    resourceName: "j-",
    resourcePatternType: ResourcePatternTypes.PREFIXED,
    principal: "User:kafkajs",
    host: "*",
    operation: AclOperationTypes.WRITE,
    permissionType: AclPermissionTypes.ALLOW,
  };
  const filter = {
    resourceType: AclResourceTypes.ANY,
    resourcePatternType: ResourcePatternTypes.ANY,
    principal: "User:kafkajs",
    operation: AclOperationTypes.ANY,
    permissionType: AclPermissionTypes.ANY,
  };
  const describe = () => admin.describeAcls(filter);
  await saw("create", () => admin.createAcls({ acl: [acl] }));
  await saw("describe", () => until(describe, (found) => found.resources.length > 0));
  await saw("delete", () => admin.deleteAcls({ filters: [filter] }));
  await saw("gone", () => until(describe, (found) => found.resources.length === 0));
  await saw("topic", () => admin.createTopics({ topics: [{ topic: "of-kafkajs" }] }));
  await saw("listed", async () => {
    const listed = () => admin.listTopics();
    return (await until(listed, (topics) => topics.includes("of-kafkajs"))).includes("of-kafkajs");
  });
  await saw("groups", () => admin.describeGroups(["nothing"]));
  await admin.disconnect();
}

async function carry() {
  const producer = kafka.producer({ idempotent: true });
  if (!(await saw("connect", () => producer.connect()))) return;
  const messages = ["0", "1", "2"].map((value) => ({ value }));
  await saw("sent", async () => {
    const told = await producer.send({ topic: given.topic, messages, acks: -1 });
    return told.map((one) => one.errorCode);
  });
  await producer.disconnect();
  const consumer = kafka.consumer({ groupId: given.group });
  await consumer.connect();
  await saw("read", async () => {
    await consumer.subscribe({ topic: given.topic, fromBeginning: true });
    const values = [];
    await new Promise((resolve, reject) => {
      consumer.on(consumer.events.CRASH, (event) => reject(event.payload.error));
      consumer
        .run({
          eachMessage: async ({ message }) => {
            values.push(message.value.toString());
            if (values.length === 3) resolve();
          },
        })
        .catch(reject);
    });
    return values;
  });
  await consumer.disconnect();
}

({ administer, carry })[scenario]().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
