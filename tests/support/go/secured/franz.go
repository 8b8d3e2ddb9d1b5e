package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func franz(given settings, options ...kgo.Opt) (*kgo.Client, error) {
	var login sasl.Mechanism
	switch given.Mechanism {
	case "PLAIN":
		login = plain.Auth{User: given.User, Pass: given.Password}.AsMechanism()
	case "SCRAM-SHA-256":
		login = scram.Auth{User: given.User, Pass: given.Password}.AsSha256Mechanism()
	default:
		login = scram.Auth{User: given.User, Pass: given.Password}.AsSha512Mechanism()
	}
	return kgo.NewClient(append(options, kgo.SeedBrokers(given.Bootstrap),
		kgo.DialTLSConfig(given.tls()), kgo.SASL(login), kgo.RetryTimeout(10*time.Second))...)
}

func acls(found kadm.DescribeACLsResults) []string {
	var lines []string
	for _, result := range found {
		for _, acl := range result.Described {
			lines = append(lines, fmt.Sprint(acl.Type, " ", acl.Name, " ", acl.Pattern, " ",
				acl.Principal, " ", acl.Host, " ", acl.Operation, " ", acl.Permission))
		}
	}
	slices.Sort(lines)
	return lines
}

func franzAdministers(ctx context.Context, given settings) {
	client := must(franz(given))
	defer client.Close()
	admin := kadm.NewClient(client)

	versions, err := admin.ApiVersions(ctx)
	for _, broker := range versions {
		saw("release", broker.VersionGuess(), broker.Err)
		broker.EachKeySorted(func(key, low, high int16) { saw("api", fmt.Sprint(key, low, high), nil) })
	}
	saw("api versions", "", err)

	made, err := admin.CreateACLs(ctx, kadm.NewACLs().Topics("f-").Groups("f-").
		TransactionalIDs("f-").ResourcePatternType(kadm.ACLPatternPrefixed).
		Allow("User:franz").AllowHosts().Deny("User:eve").DenyHosts("10.0.0.1").
		Operations(kadm.OpRead, kadm.OpDescribe))
	saw("acls made", len(made), err)
	for _, one := range made {
		saw("acl", fmt.Sprint(one.Type, one.Name, one.Principal, one.Operation, one.ErrMessage), one.Err)
	}
	filter := kadm.NewACLs().AnyResource().ResourcePatternType(kadm.ACLPatternAny).
		Allow().AllowHosts().Deny().DenyHosts().Operations()
	saw2 := func(step string) {
		found, err := until(func() ([]string, error) {
			found, err := admin.DescribeACLs(ctx, filter)
			return acls(found), err
		})
		saw(step, strings.Join(found, "; "), err)
	}
	saw2("acls")
	gone, err := admin.DeleteACLs(ctx, kadm.NewACLs().Topics("f-").Groups("f-").
		ResourcePatternType(kadm.ACLPatternPrefixed).Allow().AllowHosts().Deny().DenyHosts().
		Operations())
	saw("acl filters", len(gone), err)
	for _, one := range gone {
		saw("acls deleted", fmt.Sprint(len(one.Deleted), one.ErrMessage), one.Err)
	}

	changed, err := admin.AlterUserSCRAMs(ctx,
		[]kadm.DeleteSCRAM{{User: "nobody", Mechanism: kadm.ScramSha256}},
		[]kadm.UpsertSCRAM{
			{User: "franz", Mechanism: kadm.ScramSha256, Iterations: 5000, Password: "p"},
			{User: "gerda", Mechanism: kadm.ScramSha512, Iterations: 4096, Password: "p"}})
	saw("users", "", err)
	for _, one := range changed.Sorted() {
		saw("user "+one.User, one.ErrMessage, one.Err)
	}
	// Users that are not known yet are answers with an error.
	var users kadm.DescribedUserSCRAMs
	_, err = until(func() ([]string, error) {
		users, err = admin.DescribeUserSCRAMs(ctx, "franz", "gerda", "nobody")
		if users["franz"].Err != nil || users["gerda"].Err != nil {
			return nil, err
		}
		return []string{"franz", "gerda"}, err
	})
	for _, one := range users.Sorted() {
		saw("described "+one.User, fmt.Sprint(one.CredInfos, one.ErrMessage), one.Err)
	}
	saw("described", "", err)

	name, app := "franz", "app"
	entity := kadm.ClientQuotaEntity{{Type: "user", Name: &name}, {Type: "client-id", Name: &app}}
	everybody := kadm.ClientQuotaEntity{{Type: "user"}}
	wrong := kadm.ClientQuotaEntity{{Type: "planet", Name: &name}}
	rate := []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: 1000}}
	altered, err := admin.AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{
		{Entity: entity, Ops: rate}, {Entity: everybody, Ops: rate}, {Entity: wrong, Ops: rate}})
	saw("quotas", "", err)
	for _, one := range altered {
		saw("quota of "+one.Entity.String(), one.ErrMessage, one.Err)
	}
	quotas, err := until(func() ([]kadm.DescribedClientQuota, error) {
		return admin.DescribeClientQuotas(ctx, false, []kadm.DescribeClientQuotaComponent{
			{Type: "user", MatchType: kmsg.QuotasMatchTypeAny}})
	})
	lines := []string{}
	for _, one := range quotas {
		lines = append(lines, fmt.Sprint(one.Entity, one.Values))
	}
	slices.Sort(lines)
	saw("described quotas", lines, err)

	token, err := admin.CreateDelegationToken(ctx, kadm.CreateDelegationToken{
		Renewers: []kadm.Principal{{Type: "User", Name: "bob"}}, MaxLifetime: time.Hour})
	saw("token", fmt.Sprint(token.Owner, token.TokenRequesterPrincipal, len(token.HMAC), token.Renewers,
		token.MaxTimestamp.Sub(token.IssueTimestamp)), err)
	tokens, err := until(func() ([]kadm.DelegationToken, error) {
		return admin.DescribeDelegationTokens(ctx, kadm.Principal{Type: "User", Name: given.User})
	})
	for _, one := range tokens {
		saw("described token", fmt.Sprint(one.Owner, one.Renewers, one.TokenID == token.TokenID), nil)
	}
	saw("tokens", len(tokens), err)
	if len(tokens) == 0 {
		return
	}
	held := must(kgo.NewClient(kgo.SeedBrokers(given.Bootstrap), kgo.DialTLSConfig(given.tls()),
		kgo.SASL(scram.Auth{User: token.TokenID, Pass: base64.StdEncoding.EncodeToString(token.HMAC), IsToken: true}.AsSha512Mechanism())))
	defer held.Close()
	_, err = kadm.NewClient(held).ListTopics(ctx)
	saw("login by the token", "", err)
	_, err = kadm.NewClient(held).CreateDelegationToken(ctx, kadm.CreateDelegationToken{MaxLifetime: -1})
	saw("a token by a token", "", err)
	_, err = admin.RenewDelegationToken(ctx, token.HMAC, time.Hour)
	saw("renewed", "", err)
	_, err = admin.RenewDelegationToken(ctx, []byte("wrong"), time.Hour)
	saw("renewed another", "", err)
	_, err = admin.ExpireDelegationToken(ctx, token.HMAC, -1)
	saw("expired", "", err)

	metadata, err := admin.Metadata(ctx, given.Topic)
	saw("operations", metadata.Topics[given.Topic].AuthorizedOperations, err)
	groups, err := admin.DescribeGroups(ctx, "nothing")
	saw("group", groups["nothing"].State, err)
}

func franzCarries(ctx context.Context, given settings) {
	client := must(franz(given, kgo.ConsumeTopics(given.Topic), kgo.ConsumerGroup(given.Group),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.RecordDeliveryTimeout(10*time.Second)))
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		saw("ping", "", err)
		return
	}
	for number := range 3 {
		record := &kgo.Record{Topic: given.Topic, Value: []byte(fmt.Sprint(number))}
		saw("sent", number, client.ProduceSync(ctx, record).FirstErr())
	}
	values := []string{}
	for len(values) < 3 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			saw("read", "", err)
			return
		}
		fetches.EachRecord(func(record *kgo.Record) { values = append(values, string(record.Value)) })
	}
	saw("committed", values, client.CommitUncommittedOffsets(ctx))
}
