package main

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"slices"
	"time"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// exchange makes sarama's SCRAM of a library's.
type exchange struct {
	hash         scram.HashGeneratorFcn
	conversation *scram.ClientConversation
}

func (e *exchange) Begin(user, password, authorization string) error {
	client, err := e.hash.NewClient(user, password, authorization)
	if err == nil {
		e.conversation = client.NewConversation()
	}
	return err
}

func (e *exchange) Step(challenge string) (string, error) { return e.conversation.Step(challenge) }

func (e *exchange) Done() bool { return e.conversation.Done() }

func saramaConfig(given settings) *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Net.TLS.Enable = true
	config.Net.TLS.Config = given.tls()
	config.Net.SASL.Enable = true
	config.Net.SASL.User = given.User
	config.Net.SASL.Password = given.Password
	config.Net.SASL.Mechanism = sarama.SASLMechanism(given.Mechanism)
	config.Metadata.Retry.Max = 1
	hash := scram.HashGeneratorFcn(sha256.New)
	if given.Mechanism == sarama.SASLTypeSCRAMSHA512 {
		hash = sha512.New
	}
	config.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &exchange{hash: hash} }
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Producer.Return.Successes = true
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Net.MaxOpenRequests = 1
	return config
}

func saramaAdministers(given settings) {
	admin, err := sarama.NewClusterAdmin([]string{given.Bootstrap}, saramaConfig(given))
	if err != nil {
		saw("login", "", err)
		return
	}
	defer admin.Close()
	brokers, controller, err := admin.DescribeCluster()
	saw("cluster", fmt.Sprint(len(brokers), controller), err)

	resource := sarama.Resource{ResourceType: sarama.AclResourceTopic, ResourceName: "s-",
		ResourcePatternType: sarama.AclPatternPrefixed}
	saw("acl", "", admin.CreateACL(resource, sarama.Acl{Principal: "User:sarama", Host: "*",
		Operation: sarama.AclOperationRead, PermissionType: sarama.AclPermissionAllow}))
	principal := "User:sarama"
	filter := sarama.AclFilter{ResourceType: sarama.AclResourceAny, Principal: &principal,
		ResourcePatternTypeFilter: sarama.AclPatternAny, Operation: sarama.AclOperationAny,
		PermissionType: sarama.AclPermissionAny}
	found, err := until(func() ([]sarama.ResourceAcls, error) { return admin.ListAcls(filter) })
	for _, one := range found {
		for _, acl := range one.Acls {
			saw("listed", fmt.Sprint(one.Resource, *acl), nil)
		}
	}
	saw("acls", len(found), err)
	gone, err := admin.DeleteACL(filter, false)
	saw("deleted", len(gone), err)

	changed, err := admin.UpsertUserScramCredentials([]sarama.AlterUserScramCredentialsUpsert{
		{Name: "sarama", Mechanism: sarama.SCRAM_MECHANISM_SHA_512, Iterations: 4096,
			Salt: []byte("salt"), Password: []byte("p")}})
	for _, one := range changed {
		saw("user "+one.User, one.ErrorCode, nil)
	}
	saw("users", len(changed), err)
	described, err := until(func() ([]*sarama.DescribeUserScramCredentialsResult, error) {
		found, err := admin.DescribeUserScramCredentials([]string{"sarama"})
		// A user that is not known yet is an answer with an error.
		return slices.DeleteFunc(found, func(one *sarama.DescribeUserScramCredentialsResult) bool {
			return one.ErrorCode != sarama.ErrNoError
		}), err
	})
	for _, one := range described {
		saw("described "+one.User, one.ErrorCode, nil)
		for _, info := range one.CredentialInfos {
			saw("credential", *info, nil)
		}
	}
	saw("described", len(described), err)
	deleted, err := admin.DeleteUserScramCredentials([]sarama.AlterUserScramCredentialsDelete{
		{Name: "sarama", Mechanism: sarama.SCRAM_MECHANISM_SHA_512}})
	saw("deleted users", len(deleted), err)

	entity := []sarama.QuotaEntityComponent{{EntityType: sarama.QuotaEntityUser,
		MatchType: sarama.QuotaMatchExact, Name: "sarama"}}
	saw("quota", "", admin.AlterClientQuotas(entity,
		sarama.ClientQuotasOp{Key: "consumer_byte_rate", Value: 5000}, false))
	saw("wrong quota", "", admin.AlterClientQuotas(entity,
		sarama.ClientQuotasOp{Key: "speed", Value: 5000}, false))
	quotas, err := until(func() ([]sarama.DescribeClientQuotasEntry, error) {
		return admin.DescribeClientQuotas([]sarama.QuotaFilterComponent{{
			EntityType: sarama.QuotaEntityUser, MatchType: sarama.QuotaMatchExact, Match: "sarama"}}, false)
	})
	saw("quotas", quotas, err)

	saw("topic", "", admin.CreateTopic("of-sarama", &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false))
	topics, err := until(func() ([]string, error) {
		listed, err := admin.ListTopics()
		names := []string{}
		for name := range listed {
			if name == "of-sarama" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names, err
	})
	saw("topics", topics, err)
	groups, err := admin.DescribeConsumerGroups([]string{"nothing"})
	for _, group := range groups {
		saw("group", fmt.Sprint(group.State, group.Err), nil)
	}
	saw("groups", len(groups), err)
}

type reader struct {
	values []string
	done   context.CancelFunc
}

func (r *reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (r *reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (r *reader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		r.values = append(r.values, string(message.Value))
		session.MarkMessage(message, "")
		if len(r.values) == 3 {
			session.Commit()
			r.done()
			return nil
		}
	}
	return nil
}

func saramaCarries(ctx context.Context, given settings) {
	client, err := sarama.NewClient([]string{given.Bootstrap}, saramaConfig(given))
	if err != nil {
		saw("login", "", err)
		return
	}
	defer client.Close()
	producer, err := sarama.NewSyncProducerFromClient(client)
	if err != nil {
		saw("producer", "", err)
		return
	}
	defer producer.Close()
	for number := range 3 {
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: given.Topic,
			Value: sarama.StringEncoder(fmt.Sprint(number))})
		saw("sent", number, err)
	}
	group, err := sarama.NewConsumerGroupFromClient(given.Group, client)
	if err != nil {
		saw("group", "", err)
		return
	}
	defer group.Close()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	read := &reader{done: cancel}
	err = group.Consume(ctx, []string{given.Topic}, read)
	saw("read", read.values, err)
}
