package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/gin-gonic/gin"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v1compat"
	"partnerapi/v1compat/retire"
	"partnerapi/v1compat/usage"
	v2 "partnerapi/v2"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

// This file contains everything about version 1.

func migrateV1(ctx context.Context, d *db.DB) { check(idmap.Migrate(ctx, d.DB)) }

func mountV1(ctx context.Context, d *db.DB, api *v2.API, edge *ginop.Edge, engine *gin.Engine, log *slog.Logger) {
	keeper := must(retire.NewKeeper(ctx, retire.NewStore(d.DB, domain.SystemClock{})))
	go keeper.Watch(ctx, log)
	used := usage.New(d.DB, domain.SystemClock{}, log)
	go used.Run(ctx)
	registry := idmap.New(d.DB, 100_000)
	go registry.Watch(ctx, log)
	check(v1compat.New(api, v1compat.Config{Usage: used, Keeper: keeper, Registry: registry, Release: op.Latest}).Mount(edge, engine))
}

// pair returns requests for the same rows in both versions.
type pair func(ctx context.Context) (v1, v2 requests)

// v1 are v1's pages, compared with v2's.
func (b *bench) v1() []measure {
	var measures []measure
	add := func(name string, rows, times int, of pair, needs func(context.Context)) {
		measures = append(measures, measure{name: "v1 page of " + name + " / v2's", bound: atMost(1.15), needs: needs,
			run: func(ctx context.Context) figure {
				older, newer := of(ctx)
				got := ask[struct{ Items []json.RawMessage }](b.service, older(0)).Items
				if want := ask[rawPage](b.service, newer(0)).Data; len(got) != len(want) || len(got) < rows {
					fail("v1 returns %d rows, v2 %d, want at least %d", len(got), len(want), rows)
				}
				return b.versus(ctx, times, older, newer)
			}})
	}
	add("clients", pageRows, 2000, b.v1Clients, nil)
	add("users", pageRows, 2000, b.v1Users, nil)
	for _, rows := range []int{pageRows, 10 * pageRows} {
		add(fmt.Sprintf("%d policy users", rows), rows, 100_000/(50+rows), b.v1PolicyUsers(rows), b.data.policies)
		add(fmt.Sprintf("%d members", rows), rows, 100_000/(50+rows), b.v1Members(rows), b.data.policies)
	}
	add("a user's emails of 30 days", 0, 2000, b.v1Sent, nil)
	return measures
}

// number returns the numeric ID of an object in v1.
func (b *bench) number(ctx context.Context, kind idmap.Kind, id string) int {
	entries := must(idmap.New(b.data.db.DB, 0).Describe(ctx, kind, id))
	if len(entries) == 0 {
		fail("%s has no numeric ID", id)
	}
	return int(entries[0].Number)
}

// ofV1 returns the path of what the largest client has.
func (b *bench) ofV1(ctx context.Context, of ...any) string {
	return fmt.Sprint("/v1/clients/", b.number(ctx, idmap.Client, b.data.clients[0].String())) + fmt.Sprint(of...)
}

func (b *bench) v1Clients(context.Context) (v1, v2 requests) {
	return always(b.get("/v1/clients?limit=50")), always(b.get("/v2/clients?limit=50&sort=created_at"))
}

func (b *bench) v1Users(ctx context.Context) (v1, v2 requests) {
	return always(b.get(b.ofV1(ctx, "/users?limit=50&status=all"))), always(b.get(pathOf(b.data.clients[0], "/users?limit=50")))
}

// v1PolicyUsers are pages of the audience of a policy for all users of the largest client, and v1Members of a collection
// of all.
func (b *bench) v1PolicyUsers(rows int) pair {
	return b.v1Of(idmap.Policy, "policies", "users", rows, func(ctx context.Context) string {
		return first[domain.PolicyID](ctx, b.data, "SELECT id FROM policies WHERE client_id = $1 AND title = $2",
			b.data.clients[0], measuredPolicy+" 2").String()
	})
}

func (b *bench) v1Members(rows int) pair {
	return b.v1Of(idmap.Collection, "collections", "members", rows, func(ctx context.Context) string {
		return first[domain.CollectionID](ctx, b.data, "SELECT id FROM collections WHERE client_id = $1 AND name = $2",
			b.data.clients[0], measuredCollection).String()
	})
}

func (b *bench) v1Of(kind idmap.Kind, objects, list string, rows int, find func(context.Context) string) pair {
	return func(ctx context.Context) (v1, v2 requests) {
		id := find(ctx)
		path := func(id any) string { return fmt.Sprintf("/%s/%v/%s?limit=%d", objects, id, list, rows) }
		return always(b.get(b.ofV1(ctx, path(b.number(ctx, kind, id))))), always(b.get(pathOf(b.data.clients[0], path(id))))
	}
}

// v1Sent are the emails that a user was sent within 30 days, each time of another user.
func (b *bench) v1Sent(ctx context.Context) (v1, v2 requests) {
	users, since := b.data.randomUsers(ctx), time.Now().UTC().AddDate(0, 0, -30).Format(time.RFC3339)
	return func(i int) request {
			return newRequest("POST", "/v1/sentemails?limit=100", b.readKey,
				object{"user_infima_id": users[i%len(users)].UUID(), "start_time": since})
		}, func(i int) request {
			return b.get(fmt.Sprintf("/v2/users/%s/emails?limit=100&since=%s", users[i%len(users)], since))
		}
}
