package v2_test

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/op/mcp"
	"partnerapi/v2/v2test"
)

// attempt is a request that conflicts with the state of an object.
type attempt struct {
	at   ids            // replace those of the world
	body map[string]any // replaces members of the sample
	key  string         // the API key; empty for the tenant's
	once string         // the Idempotency-Key
}

// conflict is a cause for which an operation returns Conflict.
type conflict struct {
	operation string
	message   string // begins the message
	// fields are those that the error names; nil if no other value of a field would help.
	fields []string
	// provoke prepares the conflict.
	provoke func(w *world) attempt
}

// unprotected marks the conflicts of a service without an encryption key.
const unprotected = "the service has no encryption key"

// conflicts are all conflicts of all operations. Those of the Idempotency-Key are tested for each POST by
// TestErrorMatrix as well.
var conflicts = []conflict{
	{"users.create", "a user with this email address already exists", []string{"email"}, func(w *world) attempt {
		return attempt{body: map[string]any{"email": strings.ToUpper(w.user.Email)}}
	}},
	{"clients.create", "a client with this name already exists", []string{"name"}, func(w *world) attempt {
		return attempt{body: map[string]any{"name": " " + strings.ToUpper(w.client.Name)}}
	}},
	{"clients.update", "a client with this name already exists", []string{"name"}, func(w *world) attempt {
		return attempt{body: map[string]any{"name": w.AddClient(w.tenant, "Taken by another").Name}}
	}},
	{"collections.create", "a collection with this name already exists", []string{"name"}, func(w *world) attempt {
		w.AddCollection(w.client.ID, "Taken")
		return attempt{body: map[string]any{"name": "taken"}}
	}},
	{"collections.update", "a collection with this name already exists", []string{"name"}, func(w *world) attempt {
		w.AddCollection(w.client.ID, "Taken by another")
		return attempt{body: map[string]any{"name": "TAKEN by another"}}
	}},
	{"frameworks.assign", "this framework is already assigned to this audience", []string{"framework_id", "audience"}, func(w *world) attempt {
		body := map[string]any{"framework_id": "hipaa", "audience": map[string]any{"type": "all"}}
		o := w.operation("frameworks.assign")
		w.Do("POST", pathOf(w.T.(*testing.T), o, w.ids()), w.tenant.Key, body).Want(o.Meta().Status)
		return attempt{body: body}
	}},
	{"admins.invite", "this email address already belongs to an admin of this client", []string{"email"}, func(w *world) attempt {
		w.Exec(`INSERT INTO admins (id, partner_id, client_id, email, name, role, created_at)
			VALUES (gen_random_uuid(), $1, $2, 'known@example.com', 'K', 'owner', now())`, w.tenant.ID, w.client.ID)
		return attempt{body: map[string]any{"email": "known@example.com"}}
	}},
	{"admins.invite", "this email address already has an open invite", []string{"email"}, func(w *world) attempt {
		o, body := w.operation("admins.invite"), map[string]any{"email": "invited@example.com"}
		w.Do("POST", pathOf(w.T.(*testing.T), o, w.ids()), w.tenant.Key, body).Want(o.Meta().Status)
		return attempt{body: body}
	}},
	{"collections.create", "this Idempotency-Key was used with another request", []string{"Idempotency-Key"}, func(w *world) attempt {
		w.send(w.operation("collections.create"), w.tenant.Key, w.ids(), "Idempotency-Key", "used")
		return attempt{once: "used"}
	}},
	{"collections.create", "a request with this Idempotency-Key is still running", []string{"Idempotency-Key"}, func(w *world) attempt {
		w.holdKey("held")
		return attempt{once: "held"}
	}},
	{"sync.runs.create", "directory sync is not configured for this client", nil, func(w *world) attempt {
		return attempt{at: ids{"client_id": w.AddClient(w.tenant, "Without a directory").ID.String()}}
	}},
	{"sync.runs.create", "a sync of this client is already queued or running", nil, func(w *world) attempt {
		w.Exec("INSERT INTO sync_runs (client_id, id, status, trigger, queued_at, updated_at) VALUES ($1, gen_random_uuid(), 'queued', 'api', $2, $2)",
			w.client.ID, w.Clock.Now())
		w.Exec("UPDATE sync_runs SET status = 'queued' WHERE client_id = $1", w.client.ID)
		return attempt{}
	}},
	{"phishing.sends.cancel", "the email is being sent", nil, func(w *world) attempt {
		at := w.ids()
		w.Exec("UPDATE outbox SET lease = gen_random_uuid() WHERE id = $1", idOf[domain.ResultKind](w.T, at["result_id"]))
		return attempt{at: at}
	}},
	{"phishing.sends.cancel", "the email was already sent", nil, func(w *world) attempt { return w.endedSend("sent") }},
	{"phishing.sends.cancel", "the email failed", nil, func(w *world) attempt { return w.endedSend("failed") }},
	{"webhooks.create", "the partner has reached its limit of 20 webhooks", nil, func(w *world) attempt {
		crowded := w.AddPartner("Crowded")
		w.Exec(`INSERT INTO webhooks (partner_id, id, key_id, url, events, client_ids, status, created_at, updated_at, secret)
			SELECT $1, gen_random_uuid(), k.id, 'https://example.com/hook', '{user.created}', '{}', 'paused', $2, $2, ''
			FROM api_keys AS k, generate_series(1, $3) WHERE k.partner_id = $1`, crowded.ID, longAgo, domain.MaxWebhooks)
		return attempt{key: crowded.Key, body: map[string]any{"client_ids": []string{}}}
	}},
	{"webhooks.create", unprotected, nil, func(*world) attempt { return attempt{} }},
	{"webhooks.secret", unprotected, nil, func(*world) attempt { return attempt{} }},
	{"webhooks.test", unprotected, nil, func(*world) attempt { return attempt{} }},
	{"webhooks.test", "this webhook's secret or authorization cannot be decrypted", nil, func(w *world) attempt {
		w.Exec("UPDATE webhooks SET secret = 'damaged' WHERE id = $1", w.parts.webhook)
		return attempt{}
	}},
	{"webhooks.deliveries.redeliver", "the event is no longer available", nil, func(w *world) attempt {
		at, _, delivery := w.deliver()
		w.Exec("DELETE FROM published_events WHERE position = (SELECT position FROM webhook_deliveries WHERE id = $1)", delivery)
		return attempt{at: at}
	}},
	{"webhooks.deliveries.redeliver", "the webhook no longer has access to the client of the event", nil, func(w *world) attempt {
		at, hook, _ := w.deliver()
		w.Exec("UPDATE webhooks SET client_ids = ARRAY[gen_random_uuid()] WHERE id = $1", hook)
		return attempt{at: at}
	}},
	{"webhooks.deliveries.redeliver", "the webhook is ", nil, func(w *world) attempt {
		at, hook, _ := w.deliver()
		w.Exec("UPDATE webhooks SET status = 'paused' WHERE id = $1", hook)
		return attempt{at: at}
	}},
	{"webhooks.deliveries.redeliver", "the API key of this webhook ", nil, (*world).endKey},
	{"webhooks.secret", "the API key of this webhook ", nil, (*world).endKey},
	{"webhooks.test", "the API key of this webhook ", nil, (*world).endKey},
	{"webhooks.update", "the API key of this webhook ", nil, func(w *world) attempt {
		a := w.endKey()
		a.body = map[string]any{"status": "paused"}
		return a
	}},
}

// otherConflicts begin the messages of conflicts that no test of operations can provoke.
var otherConflicts = []string{
	// Of commands.
	"a partner with this name already exists", "the partner is archived", "the partner is already archived",
	"clients of the partner were created meanwhile", "the partner is not archived",
	"the key is revoked", "the key is a demonstration key", "the key has expired; give it a new expiry",
	"this email address already belongs to an admin of this partner", "the client is connected to another directory",
	// Of a webhook that is handed over: TestTakeOverKeepsAccess.
	"the webhook cannot keep the clients of its former key",
	// Of a process without the side that delivers.
	"this process of the service does not call webhook endpoints",
}

// operation returns the operation with the ID.
func (w *world) operation(id string) op.Operation {
	w.T.Helper()
	for _, o := range w.API.Set.All() {
		if o.Meta().ID == id {
			return o
		}
	}
	w.T.Fatalf("there is no operation %s", id)
	return nil
}

// deliver adds a webhook with a delivery, for a client of its own, and returns their IDs.
func (w *world) deliver() (at ids, hook domain.WebhookID, delivery domain.DeliveryID) {
	hook, delivery = subscribe(w.Harness, w.AddClient(w.tenant, fmt.Sprint("Client ", w.sampled.Add(1))).ID)
	return ids{"webhook_id": hook.String(), "delivery_id": delivery.String()}, hook, delivery
}

// endKey adds a webhook with a delivery, whose key is revoked.
func (w *world) endKey() attempt {
	at, hook, _ := w.deliver()
	revoked := w.AddKey(w.tenant, bothScopes, nil)
	w.Exec("UPDATE api_keys SET revoked_at = now() WHERE digest = $1", db.KeyDigest(revoked))
	w.Exec("UPDATE webhooks SET key_id = (SELECT id FROM api_keys WHERE digest = $2) WHERE id = $1", hook, db.KeyDigest(revoked))
	return attempt{at: at}
}

// endedSend ends a scheduled simulation with the status.
func (w *world) endedSend(status string) attempt {
	at := w.ids()
	id := idOf[domain.ResultKind](w.T, at["result_id"])
	w.Exec("DELETE FROM outbox WHERE id = $1", id)
	w.Exec(`UPDATE phishing_results SET status = $2, sent_at = CASE $2 WHEN 'sent' THEN send_at END, 
		failure = CASE $2 WHEN 'failed' THEN 'given up' END, failed_at = CASE $2 WHEN 'failed' THEN send_at END WHERE id = $1`, id, status)
	return attempt{at: at}
}

// holdKey makes a request with the Idempotency-Key of the tenant's key run until the end of the test.
func (w *world) holdKey(name string) {
	w.T.Helper()
	caller, err := w.DB.CallerByDigest(w.T.Context(), db.KeyDigest(w.tenant.Key))
	if err != nil {
		w.T.Fatal(err)
	}
	held, done := make(chan struct{}), make(chan error, 1)
	ctx, end := context.WithoutCancel(w.As(w.tenant.Key)), make(chan struct{})
	go func() {
		done <- w.DB.Tx(ctx, func(ctx context.Context) error {
			_, err := pg.Exec(ctx, w.DB, "hold an idempotency key", pg.SQL(
				"SELECT pg_advisory_xact_lock(hashtextextended(?::text, 0))", caller.Key.UUID()+"/"+name))
			close(held)
			<-end
			return err
		})
	}()
	<-held
	w.T.Cleanup(func() {
		close(end)
		if err := <-done; err != nil {
			w.T.Error(err)
		}
	})
}

// checkConflict verifies that a response is a Conflict that names the fields, in this order.
func checkConflict(t *testing.T, r v2test.Response, fields ...string) {
	t.Helper()
	checkError(t, r, domain.Conflict)
	checkFields(t, r.Body, fields)
}

// checkFields verifies that an error envelope names the fields, each with a message.
func checkFields(t *testing.T, envelope []byte, fields []string) {
	t.Helper()
	var got op.ErrorEnvelope
	if err := json.Unmarshal(envelope, &got); err != nil {
		t.Fatalf("%s: %v", envelope, err)
	}
	var named []string
	for _, f := range got.Error.Fields {
		named = append(named, f.Field)
		if f.Message == "" {
			t.Errorf("%s has no message", f.Field)
		}
	}
	if got.Error.Code != domain.Conflict || !slices.Equal(named, fields) {
		t.Errorf("got the fields %q in %s, want %q", named, envelope, fields)
	}
}

// TestConflictsNameTheirCause verifies for every conflict that fields names what conflicts, over HTTP and MCP.
func TestConflictsNameTheirCause(t *testing.T) {
	t.Parallel()
	options := v2test.Options{Limits: v2test.Unlimited, MCP: &mcp.Config{}}
	w := newWorld(t, options)
	options.NoKey = true
	keyless := newWorld(t, options)
	for _, c := range conflicts {
		t.Run(c.operation+": "+c.message, func(t *testing.T) {
			w := w.in(t)
			if c.message == unprotected {
				w = keyless.in(t)
			}
			o, a := w.operation(c.operation), c.provoke(w)
			at, key := w.ids(), a.key
			for name, id := range a.at {
				at[name] = id
			}
			if key == "" {
				key = w.tenant.Key
			}
			var body any
			arguments := map[string]any{}
			if o.Input().Body != nil {
				for name, value := range a.body {
					arguments[name] = value
				}
				for name, value := range w.body(o) {
					if _, given := arguments[name]; !given {
						arguments[name] = value
					}
				}
				body = arguments
			}
			var headers []string
			if a.once != "" {
				headers = []string{"Idempotency-Key", a.once}
			}
			r := w.Do(o.Meta().Method, pathOf(t, o, at), key, body, headers...)
			checkConflict(t, r, c.fields...)
			if message, _ := r.Field("error.message").(string); !strings.HasPrefix(message, c.message) {
				t.Errorf("got the message %q, want %q", message, c.message)
			}

			for _, p := range o.Input().Path {
				arguments[p.Name] = at[p.Name]
			}
			if a.once != "" {
				arguments["idempotency_key"] = a.once
			}
			checkFields(t, w.callTool(key, o, arguments), c.fields)
		})
	}
}

// callTool calls the tool of an operation, which must fail, and returns the text of its result.
func (w *world) callTool(key string, o op.Operation, arguments map[string]any) []byte {
	w.T.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	carrier := &sdk.StreamableClientTransport{Endpoint: w.URL + mcp.Path + "?toolsets=all", HTTPClient: w.Caller(key).HTTP(), MaxRetries: -1}
	session, err := client.Connect(w.T.Context(), carrier, nil)
	if err != nil {
		w.T.Fatal(err)
	}
	defer session.Close()
	out, err := session.CallTool(w.T.Context(), &sdk.CallToolParams{Name: strings.ReplaceAll(o.Meta().ID, ".", "_"), Arguments: arguments})
	if err != nil || !out.IsError {
		w.T.Fatalf("got %v %v, want an error", out, err)
	}
	return []byte(out.Content[0].(*sdk.TextContent).Text)
}

// TestEveryConflictIsKnown verifies that each conflict in the source of the service has a case in conflicts, or is one of
// otherConflicts.
func TestEveryConflictIsKnown(t *testing.T) {
	t.Parallel()
	messages := append([]string{}, otherConflicts...)
	for _, c := range conflicts {
		messages = append(messages, c.message)
	}
	found := 0
	for _, root := range []string{".", "../db", "../domain"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, source, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				text := ""
				switch n := n.(type) {
				case *ast.CallExpr:
					if name, ok := n.Fun.(*ast.SelectorExpr); ok && name.Sel.Name == "ErrConflict" {
						text = string(source[n.Args[1].Pos()-1 : n.Args[1].End()-1])
					}
				case *ast.KeyValueExpr: // of an Error that is written out
					if value, ok := n.Value.(*ast.SelectorExpr); ok && value.Sel.Name == "Conflict" {
						if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Code" {
							text = "an Error with the code Conflict: use ErrConflict"
						}
					}
				}
				if text == "" {
					return true
				}
				found++
				if !slices.ContainsFunc(messages, func(m string) bool { return strings.HasPrefix(text, `"`+m) }) {
					t.Errorf("%s: no test provokes the conflict %s", path, text)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < len(otherConflicts) {
		t.Errorf("found %d conflicts: the test shows nothing", found)
	}
}
