// kafkajs and its registry client: node registry_client.js SCENARIO REGISTRY_URL BOOTSTRAP TOPIC
// Prints what was read as one line of JSON; ends with 1 and a stack where an expectation fails.
"use strict";

const assert = require("node:assert/strict");
const { Kafka, logLevel } = require("kafkajs");
const {
  SchemaRegistry,
  SchemaType,
  COMPATIBILITY,
} = require("@kafkajs/confluent-schema-registry");

const [scenario, host, bootstrap, topic] = process.argv.slice(2);
const value = `${topic}-value`;
const kafka = new Kafka({ brokers: bootstrap.split(","), logLevel: logLevel.ERROR });

function newRegistry(options) {
  return new SchemaRegistry({ host, retry: { retries: 0 } }, options);
}

// Send encoded values; decode what comes, in order, by a client that knows nothing yet.
async function throughTopic(encoded, options) {
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({
    topic,
    messages: encoded.map((bytes) => ({ value: bytes, partition: 0 })),
  });
  await producer.disconnect();
  const reader = newRegistry(options);
  const consumer = kafka.consumer({ groupId: `group-of-${topic}` });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const read = [];
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, (event) => reject(event.payload.error));
    consumer
      .run({
        eachMessage: async ({ message }) => {
          read.push(await reader.decode(message.value));
          if (read.length === encoded.length) resolve();
        },
      })
      .catch(reject);
  });
  await consumer.disconnect();
  return JSON.parse(JSON.stringify(read));
}

async function refused(promise, status) {
  const error = await promise.then(
    () => assert.fail("nothing was refused"),
    (raised) => raised,
  );
  assert.equal(error.status, status, String(error));
  return error.message;
}

const scenarios = {
  async avro() {
    const registry = newRegistry();
    const place = { type: "record", name: "Place", namespace: "shop", fields: [{ name: "x", type: "int" }] };
    const made = await registry.register(
      { type: SchemaType.AVRO, schema: JSON.stringify(place) },
      { subject: `${topic}-place` },
    );
    assert.equal(await registry.getLatestSchemaId(`${topic}-place`), made.id);
    assert.equal(await registry.getRegistryId(`${topic}-place`, 1), made.id);
    const references = [{ name: "shop.Place", subject: `${topic}-place`, version: 1 }];
    const order = (...more) => ({
      type: SchemaType.AVRO,
      schema: JSON.stringify({
        type: "record",
        name: "Order",
        namespace: "shop",
        fields: [{ name: "place", type: "shop.Place" }, ...more],
      }),
      references,
    });
    const options = { subject: value, compatibility: COMPATIBILITY.BACKWARD };
    const first = await registry.register(order(), options);
    const colour = { name: "colour", type: ["null", "string"], default: null };
    const second = await registry.register(order(colour), { subject: value });
    // What is there already is answered with its time, as Confluent's registry does.
    const { ts, deleted, ...again } = await registry.register(order(colour), { subject: value });
    assert.deepEqual(again, second);
    assert.ok(ts > 0 && deleted === false);
    assert.equal(await registry.getRegistryIdBySchema(`${topic}-place`, place), made.id);
    const message = await refused(
      registry.register(order({ name: "due", type: "long" }), { subject: value }),
      409,
    );
    assert.match(message, /due/);
    return throughTopic([
      await registry.encode(first.id, { place: { x: 1 } }),
      await registry.encode(second.id, { place: { x: 2 }, colour: "red" }),
    ]);
  },

  async json() {
    const registry = newRegistry();
    const part = {
      $id: "https://shop.org/part.json",
      type: "object",
      properties: { id: { type: "integer" } },
      required: ["id"],
    };
    const whole = (more) => ({
      type: SchemaType.JSON,
      schema: JSON.stringify({
        $id: "https://shop.org/whole.json",
        type: "object",
        properties: { part: { $ref: "https://shop.org/part.json" }, ...more },
        additionalProperties: false,
      }),
      references: [{ name: "https://shop.org/part.json", subject: `${topic}-part`, version: 1 }],
    });
    await registry.register(
      { type: SchemaType.JSON, schema: JSON.stringify(part) },
      { subject: `${topic}-part` },
    );
    const first = await registry.register(whole({}), { subject: value });
    const second = await registry.register(whole({ size: { type: "number" } }), { subject: value });
    await assert.rejects(registry.encode(first.id, { part: {} }));
    return throughTopic([
      await registry.encode(first.id, { part: { id: 1 } }),
      await registry.encode(second.id, { part: { id: 2 }, size: 2.5 }),
    ]);
  },

  async protobuf() {
    const options = { [SchemaType.PROTOBUF]: { messageName: "Order" } };
    const registry = newRegistry(options);
    const place = 'syntax = "proto3"; package shop; message Place { int32 x = 1; }';
    await newRegistry().register(
      { type: SchemaType.PROTOBUF, schema: place },
      { subject: `${topic}/place.proto` },
    );
    const order = (more) => ({
      type: SchemaType.PROTOBUF,
      schema: `syntax = "proto3"; package shop; import "${topic}/place.proto";
        message Order { Place place = 1; ${more} }`,
      references: [
        { name: `${topic}/place.proto`, subject: `${topic}/place.proto`, version: 1 },
      ],
    });
    const first = await registry.register(order(""), { subject: value });
    const second = await registry.register(order("string colour = 2;"), { subject: value });
    const dangling = 'syntax = "proto3"; package shop; import "none.proto"; message Order {}';
    await refused(
      registry.register({ type: SchemaType.PROTOBUF, schema: dangling }, { subject: value }),
      422,
    );
    return throughTopic(
      [
        await registry.encode(first.id, { place: { x: 1 } }),
        await registry.encode(second.id, { place: { x: 2 }, colour: "red" }),
      ],
      options,
    );
  },
};

scenarios[scenario]().then(
  (read) => process.stdout.write(`${JSON.stringify(read)}\n`),
  (error) => {
    process.stderr.write(`${error.stack}\n`);
    process.exit(1);
  },
);
