// franz-go and its registry client: program SCENARIO REGISTRY_URL BOOTSTRAP[,BOOTSTRAP]… TOPIC
//
// Ends with 1 and a line on standard error where an expectation fails.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type world struct {
	ctx       context.Context
	client    *sr.Client
	bootstrap []string
	topic     string
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func expect(holds bool, format string, values ...any) {
	if !holds {
		panic(fmt.Sprintf(format, values...))
	}
}

func same(found, expected any) {
	expect(reflect.DeepEqual(found, expected), "found %v instead of %v", found, expected)
}

func refused(err error, code int) {
	var answer *sr.ResponseError
	expect(errors.As(err, &answer), "%v is no answer", err)
	expect(answer.ErrorCode == code, "code %d instead of %d: %v", answer.ErrorCode, code, err)
}

// through sends values and returns the topic's records.
func (w world) through(values ...[]byte) [][]byte {
	client := must(kgo.NewClient(kgo.SeedBrokers(w.bootstrap...), kgo.ConsumeTopics(w.topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())))
	defer client.Close()
	for _, value := range values {
		record := &kgo.Record{Topic: w.topic, Partition: 0, Value: value}
		must(0, client.ProduceSync(w.ctx, record).FirstErr())
	}
	var read [][]byte
	for len(read) < len(values) {
		fetches := client.PollFetches(w.ctx)
		must(0, fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) { read = append(read, record.Value) })
	}
	return read
}

const (
	placeText = `{"type":"record","name":"shop.Place","fields":[{"name":"x","type":"int"}]}`
	orderText = `{"type":"record","name":"shop.Order","fields":[{"name":"place","type":"shop.Place"}%s]}`
)

type place struct {
	X int `avro:"x"`
}

type order struct {
	Place  place  `avro:"place"`
	Colour string `avro:"colour"`
}

func (w world) client_methods() {
	c, ctx, subject := w.client, w.ctx, w.topic+"/é %2F"
	types := must(c.SupportedTypes(ctx))
	same(len(types), 3)
	user := func(more string) sr.Schema {
		return sr.Schema{Schema: `{"type":"record","name":"U","fields":[{"name":"a","type":"int"}` + more + `]}`}
	}
	more := `,{"name":"b","type":"int","default":1}`
	metadata := &sr.SchemaMetadata{
		Tags:       map[string][]string{"U.a": {"PII"}},
		Properties: map[string]string{"owner": "me"},
	}
	rules := &sr.SchemaRuleSet{DomainRules: []sr.SchemaRule{{Name: "check", Kind: sr.SchemaRuleKindCondition,
		Mode: sr.SchemaRuleModeWrite, Type: "CEL", Tags: []string{"PII"}, Expr: "message.a > 0"}}}
	first := must(c.CreateSchema(ctx, subject, user("")))
	same(first.Version, 1)
	wide := user(more)
	wide.SchemaMetadata, wide.SchemaRuleSet = metadata, rules
	second := must(c.CreateSchema(ctx, subject, wide))
	same(second.Version, 2)
	same(second.SchemaMetadata, metadata)
	same(second.SchemaRuleSet.DomainRules, rules.DomainRules)
	same(must(c.RegisterSchema(ctx, subject, wide, -1, -1)), second.ID)
	same(must(c.SchemaByID(ctx, first.ID)).Schema, user("").Schema)
	same(must(c.SchemaTextByID(ctx, first.ID)), user("").Schema)
	same(must(c.SubjectsByID(ctx, first.ID)), []string{subject})
	same(len(must(c.SchemaVersionsByID(ctx, first.ID))), 1)
	same(must(c.SubjectVersions(ctx, subject)), []int{1, 2})
	same(must(c.SchemaByVersion(ctx, subject, -1)).ID, second.ID)
	same(must(c.SchemaTextByVersion(ctx, subject, 1)), user("").Schema)
	same(len(must(c.Schemas(ctx, subject))), 2)
	expect(len(must(c.AllSchemas(ctx))) >= 2, "all schemas")
	found := must(c.LookupSchema(ctx, subject, wide))
	same(found.ID, second.ID)
	if guid := found.GUID; guid != "" {
		same(must(c.SchemaByGUID(ctx, guid)).Schema.Schema, wide.Schema)
		same(must(c.SchemaIDsByGUID(ctx, guid))[0].ID, second.ID)
	}
	prefixed := sr.WithParams(ctx, sr.SubjectPrefix(w.topic), sr.Offset(0), sr.Limit(1))
	same(must(c.Subjects(prefixed)), []string{subject})

	due := user(`,{"name":"due","type":"int"}`)
	same(must(c.CheckCompatibility(ctx, subject, -1, due)).Is, false)
	verbose := must(c.CheckCompatibility(sr.WithParams(ctx, sr.Verbose), subject, 1, due))
	expect(len(verbose.Messages) > 0, "no message says why")
	_, err := c.CreateSchema(ctx, subject, due)
	refused(err, 409)
	set := c.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatFull, Normalize: true}, subject)
	same(set[0].Err, nil)
	kept := c.Compatibility(ctx, subject)
	same(kept[0].Level, sr.CompatFull)
	same(kept[0].Normalize, true)
	same(c.ResetCompatibility(ctx, subject)[0].Err, nil)
	same(c.Compatibility(sr.WithParams(ctx, sr.DefaultToGlobal), subject)[0].Level, sr.CompatBackward)
	same(c.SetMode(ctx, sr.ModeReadOnly, subject)[0].Err, nil)
	same(c.Mode(ctx, subject)[0].Mode, sr.ModeReadOnly)
	_, err = c.CreateSchema(ctx, subject, due)
	refused(err, 42205)
	same(c.ResetMode(ctx, subject)[0].Err, nil)
	same(c.Mode(ctx)[0].Mode, sr.ModeReadWrite)

	same(c.DeleteSchema(ctx, subject, 2, sr.SoftDelete), nil)
	same(must(c.SubjectVersions(sr.WithParams(ctx, sr.ShowDeleted), subject)), []int{1, 2})
	same(c.DeleteSchema(ctx, subject, 2, sr.HardDelete), nil)
	same(must(c.DeleteSubject(ctx, subject, sr.SoftDelete)), []int{1})
	same(must(c.DeleteSubject(ctx, subject, sr.HardDelete)), []int{1})
	_, err = c.SubjectVersions(ctx, subject)
	refused(err, 40401)

	inContext := must(sr.NewClient(sr.URLs(w.url()), sr.DefaultSchemaContext("."+w.topic)))
	made := must(inContext.CreateSchema(ctx, "plain", user("")))
	same(made.ID, 1)
	contexts := must(c.Contexts(ctx))
	expect(strings.Contains(strings.Join(contexts, " "), w.topic), "contexts: %v", contexts)
	imports := must(sr.NewClient(sr.URLs(w.url()), sr.DefaultSchemaContext("."+w.topic+"-import")))
	same(imports.SetMode(ctx, sr.ModeImport, "plain")[0].Err, nil)
	given := must(imports.CreateSchemaWithIDAndVersion(ctx, "plain", user(""), 77, 5))
	same([]int{given.ID, given.Version}, []int{77, 5})
}

func (w world) avro() {
	c, ctx := w.client, w.ctx
	must(c.CreateSchema(ctx, w.topic+"-place", sr.Schema{Schema: placeText}))
	references := []sr.SchemaReference{{Name: "shop.Place", Subject: w.topic + "-place", Version: 1}}
	texts := []string{
		fmt.Sprintf(orderText, ""),
		fmt.Sprintf(orderText, `,{"name":"colour","type":"string","default":"none"}`),
	}
	var serde sr.Serde
	var sent [][]byte
	for at, text := range texts {
		made := must(c.CreateSchema(ctx, w.topic+"-value", sr.Schema{Schema: text, References: references}))
		same(made.Version, at+1)
		cache := &avro.SchemaCache{}
		must(avro.ParseWithCache(placeText, "", cache))
		schema := must(avro.ParseWithCache(made.Schema.Schema, "", cache))
		serde.Register(made.ID, order{},
			sr.EncodeFn(func(v any) ([]byte, error) { return avro.Marshal(schema, v) }),
			sr.DecodeFn(func(b []byte, v any) error { return avro.Unmarshal(schema, b, v) }))
		sent = append(sent, must(serde.Encode(order{place{at + 1}, "red"})))
	}
	uses := must(c.SchemaReferences(ctx, w.topic+"-place", 1))
	same(len(uses), 2)
	read := w.through(sent...)
	for at, expected := range []order{{place{1}, ""}, {place{2}, "red"}} {
		var value order
		must(0, serde.Decode(read[at], &value))
		same(value, expected)
	}
}

func (w world) json() {
	c, ctx := w.client, w.ctx
	part := `{"$id":"https://shop.org/part.json","type":"object","properties":{"id":{"type":"integer"}}}`
	must(c.CreateSchema(ctx, w.topic+"-part", sr.Schema{Schema: part, Type: sr.TypeJSON}))
	whole := `{"type":"object","properties":{"part":{"$ref":"https://shop.org/part.json"}}}`
	made := must(c.CreateSchema(ctx, w.topic+"-value", sr.Schema{
		Schema: whole, Type: sr.TypeJSON, References: []sr.SchemaReference{
			{Name: "https://shop.org/part.json", Subject: w.topic + "-part", Version: 1}}}))
	type value struct{ Part map[string]int }
	var serde sr.Serde
	serde.Register(made.ID, value{}, sr.EncodeFn(json.Marshal), sr.DecodeFn(json.Unmarshal))
	read := w.through(must(serde.Encode(value{map[string]int{"id": 7}})))
	same(must(serde.DecodeNew(read[0])), &value{map[string]int{"id": 7}})
}

// protobuf sends messages that are on the wire what the well-known ones are.
func (w world) protobuf() {
	c, ctx := w.client, w.ctx
	base := `syntax = "proto3"; package shop; message Base { int64 value = 1; }`
	must(c.CreateSchema(ctx, w.topic+"/base.proto", sr.Schema{Schema: base, Type: sr.TypeProtobuf}))
	text := `syntax = "proto3"; package shop; import "` + w.topic + `/base.proto";
		import "google/protobuf/timestamp.proto";
		message First { int64 value = 1; }
		message Second {
			Base base = 1;
			google.protobuf.Timestamp at = 2;
			message Unused { int32 number = 1; }
			message Inner { int64 seconds = 1; int32 nanos = 2; message Deep { int64 seconds = 1; int32 nanos = 2; } }
		}`
	made := must(c.CreateSchema(ctx, w.topic+"-value", sr.Schema{
		Schema: text, Type: sr.TypeProtobuf, References: []sr.SchemaReference{
			{Name: w.topic + "/base.proto", Subject: w.topic + "/base.proto", Version: 1}}}))
	same(must(c.LookupSchema(ctx, w.topic+"-value", made.Schema)).ID, made.ID)
	var serde sr.Serde
	for _, one := range []struct {
		value proto.Message
		index []int
	}{
		{&wrapperspb.Int64Value{}, []int{0}},
		{&timestamppb.Timestamp{}, []int{1, 1}},
		{&durationpb.Duration{}, []int{1, 1, 0}},
	} {
		serde.Register(made.ID, one.value, sr.Index(one.index...),
			sr.GenerateFn(func() any { return one.value.ProtoReflect().New().Interface() }),
			sr.EncodeFn(func(v any) ([]byte, error) { return proto.Marshal(v.(proto.Message)) }),
			sr.DecodeFn(func(b []byte, v any) error { return proto.Unmarshal(b, v.(proto.Message)) }))
	}
	values := []proto.Message{
		wrapperspb.Int64(5), &timestamppb.Timestamp{Seconds: 6}, &durationpb.Duration{Seconds: 7},
	}
	var sent [][]byte
	for _, value := range values {
		sent = append(sent, must(serde.Encode(value)))
	}
	for at, bytes := range w.through(sent...) {
		found := must(serde.DecodeNew(bytes)).(proto.Message)
		expect(proto.Equal(found, values[at]), "found %v instead of %v", found, values[at])
	}
}

func (w world) url() string { return os.Args[2] }

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	defer func() {
		if fault := recover(); fault != nil {
			fmt.Fprintln(os.Stderr, fault)
			os.Exit(1)
		}
	}()
	w := world{ctx, must(sr.NewClient(sr.URLs(os.Args[2]))), strings.Split(os.Args[3], ","), os.Args[4]}
	map[string]func(){
		"client": w.client_methods, "avro": w.avro, "json": w.json, "protobuf": w.protobuf,
	}[os.Args[1]]()
}
