package v2_test

import (
	"slices"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// auditedKinds are the kinds of object that the operations' entries of the audit
// trail name.
var auditedKinds = map[string]string{
	"admins.invite": "invite", "clients.create": "client", "clients.update": "client",
	"collections.create": "collection", "collections.update": "collection", "collections.delete": "collection",
	"collections.members.add": "collection", "collections.members.remove": "collection",
	"exposures.resolve": "breach", "frameworks.assign": "framework assignment", "frameworks.remove": "framework assignment",
	"phishing.send": "client", "phishing.sends.cancel": "phishing result", "phishing.sends.cancel_many": "client", "policies.remind": "policy", "reports.create": "report", "sync.runs.create": "sync run",
	"overrides.remove": "user", "training.assign": "client", "training.remind": "client", "users.create": "user", "users.update": "user",
	"webhooks.create": "webhook", "webhooks.update": "webhook", "webhooks.delete": "webhook", "webhooks.secret": "webhook",
	"webhooks.test": "webhook", "webhooks.deliveries.redeliver": "delivery",
}

// lastEntry is the newest entry of the audit trail.
func (w *world) lastEntry() (last domain.AuditEntry) {
	w.T.Helper()
	err := w.DB.EachAuditEntry(w.T.Context(), domain.AuditFilter{}, func(e domain.AuditEntry) error {
		last = e
		return nil
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return last
}

// TestAuditNamesObjectsAndFields: every write leaves an entry that names what it made
// or changed, and the members of its body, and holds none of their values.
func TestAuditNamesObjectsAndFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited, Audit: true})
	for _, o := range w.API.Set.All() {
		if o.Meta().Scope != domain.Write {
			continue
		}
		t.Run(o.Meta().ID, func(t *testing.T) {
			w := w.in(t)
			var body map[string]any
			var sent any // null where the operation takes no body
			if o.Input().Body != nil {
				body = w.body(o)
				sent = body
			}
			var fields []string
			for name, value := range body {
				if list, ok := value.([]any); value != false && (!ok || len(list) > 0) {
					fields = append(fields, name)
				}
			}
			slices.Sort(fields)

			path := pathOf(t, o, w.ids())
			r := w.Do(o.Meta().Method, path, w.tenant.Key, sent).Want(o.Meta().Status)
			e := w.lastEntry()
			if e.Operation != o.Meta().ID || e.Object.Kind != auditedKinds[o.Meta().ID] || e.Object.ID == "" {
				t.Fatalf("the entry is %+v", e)
			}
			if e.Client.IsZero() && strings.Contains(o.Meta().Path, "/:") && !strings.HasPrefix(path, "/v2/webhooks") {
				t.Error("the entry names no client")
			}
			shown := strings.Contains(path, e.Object.ID) || strings.Contains(string(r.Body), e.Object.ID)
			if inside := e.Object.Kind == "invite" || e.Object.Kind == "sync run"; shown == inside {
				t.Errorf("%s is in the request or its answer: %t", e.Object, shown)
			}
			for _, name := range fields {
				if !slices.Contains(e.Fields, name) {
					t.Errorf("the fields are %v, without %s", e.Fields, name)
				}
			}
			for _, name := range e.Fields {
				if _, named := body[name]; !named && !strings.HasSuffix(path, "/"+name) {
					t.Errorf("the fields are %v; %s was not sent", e.Fields, name)
				}
			}
		})
	}
}
