package directorytest

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"partnerapi/platform/directory"
)

// Microsoft is a server of a directory with Microsoft Graph, which also issues tokens.
type Microsoft struct {
	server
	tenant, app, secret string
	// generation is that of the links that are known.
	generation int
	behavior   Behavior
}

// Behavior is how a server answers where Graph's documentation allows several ways (see Documented). The zero value is
// the plainest way.
type Behavior struct {
	// Absent leaves out properties that were never set, instead of returning null.
	Absent bool
	// Minimal returns only the changed properties of a changed account.
	Minimal bool
	// Apart returns the link to an account's manager in its own entry, on a later page.
	Apart bool
	// Reverse returns the accounts of a round in the other order.
	Reverse bool
	// EmptyPages returns an empty page before each page.
	EmptyPages bool
	// Removed returns removed accounts in the first round too.
	Removed bool
	// Repeat returns accounts that changed since the beginning of the first round once more, at its end; in that round
	// with their changed properties only, if Minimal is set.
	Repeat bool
	// Location sends one with the 410 of an unknown link.
	Location bool
}

// Behave makes the server answer in other ways from now on, links that it has issued included.
func (m *Microsoft) Behave(b Behavior) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.behavior = b
}

// NewMicrosoft starts a server. The caller closes it.
func NewMicrosoft(d *Directory) *Microsoft {
	m := &Microsoft{
		tenant: "5f1a3c52-0d5b-4c3e-8f5a-3d6b6a1f0e11", app: "0c7b1f6e-9f43-4f0e-bb2a-7f2f7c0e8a22",
		secret: "s3cr3t~of~the~app",
	}
	routes := http.NewServeMux()
	routes.HandleFunc("POST /{tenant}/oauth2/v2.0/token", m.token)
	for path, handle := range map[string]http.HandlerFunc{
		"GET /v1.0/users/delta": m.delta,
		"GET /v1.0/groups/{id}": m.group,
		"GET /v1.0/groups/{id}/transitiveMembers/microsoft.graph.user": m.members,
		"POST /v1.0/$batch": m.batch,
	} {
		routes.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if !m.authorized(r) {
				refuse(w, http.StatusUnauthorized, "InvalidAuthenticationToken", "The token is expired.")
				return
			}
			handle(w, r)
		})
	}
	m.start(d, routes)
	return m
}

// Endpoints returns the server's address.
func (m *Microsoft) Endpoints() directory.Endpoints {
	return directory.Endpoints{Graph: m.URL, Login: m.URL}
}

// Settings returns the settings of a connection to a group, or to the tenant if group is empty.
func (m *Microsoft) Settings(group string) json.RawMessage {
	text, _ := json.Marshal(directory.MicrosoftSettings{Tenant: m.tenant, AppID: m.app, Group: group})
	return text
}

// Credentials returns the app's secret.
func (m *Microsoft) Credentials() []byte { return []byte(m.secret) }

// ForgetPositions makes Graph return 410 to all links it has issued.
func (m *Microsoft) ForgetPositions() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.generation++
}

func (m *Microsoft) current() (generation int, b Behavior) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.generation, m.behavior
}

func (m *Microsoft) token(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int, code, description string) {
		reply(w, status, map[string]any{"error": code, "error_description": description + "\r\nTrace ID: 0000"})
	}
	switch {
	case r.PathValue("tenant") != m.tenant:
		refuse(http.StatusBadRequest, "invalid_request", "AADSTS90002: Tenant '"+r.PathValue("tenant")+"' not found.")
	case r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != m.URL+"/.default":
		refuse(http.StatusBadRequest, "invalid_scope", "AADSTS70011: The provided value for scope is not valid.")
	case r.FormValue("client_id") != m.app:
		refuse(http.StatusBadRequest, "unauthorized_client", "AADSTS700016: Application was not found in the directory.")
	case r.FormValue("client_secret") != m.secret:
		refuse(http.StatusUnauthorized, "invalid_client", "AADSTS7000215: Invalid client secret: "+r.FormValue("client_secret"))
	default:
		m.giveToken(w)
	}
}

// stage is a part of a round.
type stage int

// The stages of the first round are these, in their order, and a round of changes has the last one only.
const (
	everyone stage = iota // every account
	managers              // the links to managers, with Behavior.Apart
	changes               // accounts that changed
)

// link is the content of the tokens in links.
type link struct {
	Generation int
	Select     string
	Stage      stage
	Count      int   // how many accounts the first round has, in their order
	At         int   // the place in this order
	From       int64 // the change after which the round begins
	Until      int64 // the change with which the round ends
	After      int64 // the change behind which the stage of changes continues; 0 for its beginning
	Empty      bool  // an empty page was returned
}

// delta answers GET /users/delta.
func (m *Microsoft) delta(w http.ResponseWriter, r *http.Request) {
	m.directory.mu.Lock()
	defer m.directory.mu.Unlock()
	generation, b := m.current()
	now := m.directory.seq
	at := link{
		Generation: generation, Select: r.URL.Query().Get("$select"), Count: len(m.directory.order), From: now, Until: now,
	}
	skip, since := r.URL.Query().Get("$skiptoken"), r.URL.Query().Get("$deltatoken")
	if token := skip + since; token != "" {
		at = link{}
		if !unseal(token, &at) {
			refuse(w, http.StatusBadRequest, "Request_BadRequest", "Badly formed token.")
			return
		}
		if at.Generation != generation {
			if b.Location {
				w.Header().Set("Location", m.URL+"/v1.0/users/delta?$deltatoken=")
			}
			refuse(w, http.StatusGone, "SyncStateNotFound", "The sync state generation is not found; a full sync is needed.")
			return
		}
		if since != "" {
			at.Until = now
		}
	}

	value, next, more := m.page(at, b, m.size(preferred(r), 200))
	answer := map[string]any{"@odata.context": m.URL + "/v1.0/$metadata#users(" + at.Select + ")", "value": value}
	if more {
		answer["@odata.nextLink"] = m.URL + "/v1.0/users/delta?" + url.Values{"$skiptoken": {seal(next)}}.Encode()
	} else {
		done := link{Generation: at.Generation, Select: at.Select, Stage: changes, From: next.Until}
		answer["@odata.deltaLink"] = m.URL + "/v1.0/users/delta?" + url.Values{"$deltatoken": {seal(done)}}.Encode()
	}
	reply(w, http.StatusOK, answer)
}

// page returns the page at a link, and the next link, which is valid if there are more pages.
func (m *Microsoft) page(at link, b Behavior, size int) (value []any, next link, more bool) {
	next, value = at, []any{}
	if b.EmptyPages && !at.Empty {
		next.Empty = true
		return value, next, true
	}
	next.Empty = false
	if at.Stage == changes {
		value, next.After, more = m.changes(at, b, size)
		return value, next, more
	}

	for ; next.At < at.Count && len(value) < size; next.At++ {
		i := next.At
		if b.Reverse {
			i = at.Count - 1 - i
		}
		if shown := m.directory.first(m.directory.order[i], at, b); shown != nil {
			value = append(value, shown)
		}
	}
	switch {
	case next.At < at.Count:
		return value, next, true
	case at.Stage == everyone && b.Apart:
		next.Stage, next.At = managers, 0
		return value, next, true
	case b.Repeat && m.directory.seq > at.From:
		next.Stage, next.Until = changes, m.directory.seq
		return value, next, true
	}
	return value, next, false
}

// first returns an account as the first round does at a stage; nil if it does not.
func (d *Directory) first(id string, at link, b Behavior) map[string]any {
	e := d.accounts[id]
	links := d.managerLinks(e, 0)
	switch {
	case e.removed && b.Removed && at.Stage == everyone:
		return e.gone()
	case e.removed:
		return nil
	case at.Stage == managers && links != nil && at.selects("manager"):
		return map[string]any{"id": id, "manager@delta": links}
	case at.Stage == managers:
		return nil
	}
	user := e.shown(at.Select, b.Absent)
	if links != nil && at.selects("manager") && !b.Apart {
		user["manager@delta"] = links
	}
	return user
}

// changes returns a page of the accounts of which something selected changed.
func (m *Microsoft) changes(at link, b Behavior, size int) (value []any, after int64, more bool) {
	list := map[int64]*entry{}
	for _, e := range m.directory.accounts {
		if seq := e.changedWithin(at); seq != 0 {
			list[seq] = e
		}
	}
	order := slices.Sorted(maps.Keys(list))
	if b.Reverse {
		slices.Reverse(order)
	}
	value = []any{}
	for _, seq := range order {
		switch {
		case at.After != 0 && (b.Reverse && seq >= at.After || !b.Reverse && seq <= at.After): // on a page before
		case len(value) == size:
			return value, after, true
		default:
			value, after = append(value, m.directory.changed(list[seq], at, b)), seq
		}
	}
	return value, after, false
}

// changedWithin returns the last change of an account within a round; 0 if nothing selected changed.
func (e *entry) changedWithin(at link) (last int64) {
	within := func(seq int64) {
		if seq > at.From && seq <= at.Until {
			last = max(last, seq)
		}
	}
	within(e.movedAt)
	for name, seq := range e.changed {
		if at.selects(name) {
			within(seq)
		}
	}
	return last
}

// changed returns an account as a round of changes does.
func (d *Directory) changed(e *entry, at link, b Behavior) map[string]any {
	if e.removed {
		return e.gone()
	}
	user := e.shown(at.Select, b.Absent)
	for name := range graphProperties(e.Account) {
		if b.Minimal && e.changed[name] <= at.From {
			delete(user, name)
		}
	}
	if links := d.managerLinks(e, at.From); links != nil && at.selects("manager") {
		user["manager@delta"] = links
	}
	return user
}

// managerLinks returns what changed of an account's link to its manager after from: nil for nothing, or no manager and
// none before. A deletion of the manager is no change of the link.
func (d *Directory) managerLinks(e *entry, from int64) (links []any) {
	if e.changed["manager"] <= from {
		return nil
	}
	add := func(id string, removed bool) {
		l := map[string]any{"@odata.type": "#microsoft.graph.user", "id": id}
		if removed {
			l["@removed"] = map[string]any{"reason": "deleted"}
		}
		links = append(links, l)
	}
	if m := d.accounts[e.Manager]; m != nil && !m.removed {
		add(e.Manager, false)
	}
	if from > 0 && e.before != "" && e.before != e.Manager {
		add(e.before, true)
	}
	return links
}

// selects reports whether the first request of a link selected a property.
func (l link) selects(name string) bool { return slices.Contains(strings.Split(l.Select, ","), name) }

// graphProperties returns the properties of an account by their names in Graph. Zero values are not set.
func graphProperties(a Account) map[string]any {
	userType := "Member"
	if a.Guest {
		userType = "Guest"
	}
	return map[string]any{
		"displayName": strings.TrimSpace(a.First + " " + a.Last), "givenName": a.First, "surname": a.Last, "mail": a.Email,
		"department": a.Department, "jobTitle": a.Title, "preferredLanguage": a.Language,
		"accountEnabled": !a.Disabled, "userType": userType, "manager": a.Manager,
	}
}

// gone returns a removed account.
func (e *entry) gone() map[string]any {
	reason := "changed"
	if e.purged {
		reason = "deleted"
	}
	return map[string]any{"id": e.ID, "@removed": map[string]any{"reason": reason}}
}

// shown returns the selected properties of an account, with null for those that are not set; without those that were
// never set, if absent is true.
func (e *entry) shown(selected string, absent bool) map[string]any {
	properties, user := graphProperties(e.Account), map[string]any{"id": e.ID}
	for name := range strings.SplitSeq(selected, ",") {
		value, known := properties[name]
		_, wasSet := e.changed[name]
		switch {
		case !known || name == "manager" || value == "" && absent && !wasSet:
		case value == "":
			user[name] = nil
		default:
			user[name] = value
		}
	}
	return user
}

// preferred returns the page size that a request prefers; 0 for none.
func preferred(r *http.Request) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(r.Header.Get("Prefer"), "odata.maxpagesize="))
	return n
}

// group answers GET /groups/{id}.
func (m *Microsoft) group(w http.ResponseWriter, r *http.Request) {
	m.directory.mu.Lock()
	defer m.directory.mu.Unlock()
	g, ok := m.directory.groups[r.PathValue("id")]
	if !ok {
		refuse(w, http.StatusNotFound, "Request_ResourceNotFound", "Resource '"+r.PathValue("id")+"' does not exist.")
		return
	}
	reply(w, http.StatusOK, map[string]any{"displayName": g.name})
}

// members answers the list of a group's transitive members that are users.
func (m *Microsoft) members(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if r.Header.Get("ConsistencyLevel") != "eventual" || query.Get("$count") != "true" {
		refuse(w, http.StatusBadRequest, "Request_UnsupportedQuery", "Casts need ConsistencyLevel: eventual and $count=true.")
		return
	}
	m.directory.mu.Lock()
	defer m.directory.mu.Unlock()
	in := m.directory.members(r.PathValue("id"))
	top, _ := strconv.Atoi(query.Get("$top"))
	at, _ := strconv.Atoi(query.Get("$skiptoken"))
	size, order, value := m.size(top, 999), m.directory.order, []any{}
	more := false
	for ; at < len(order) && !more; at++ {
		switch e := m.directory.accounts[order[at]]; {
		case !in[e.ID] || e.removed:
		case len(value) == size:
			more = true
			at--
		default:
			value = append(value, e.shown(query.Get("$select"), false /* absent */))
		}
	}
	answer := map[string]any{"@odata.count": len(in), "value": value}
	if more {
		query.Set("$skiptoken", strconv.Itoa(at))
		answer["@odata.nextLink"] = m.URL + r.URL.Path + "?" + query.Encode()
	}
	reply(w, http.StatusOK, answer)
}

// batch answers POST /$batch, which supports only managers, in another order than requested.
func (m *Microsoft) batch(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Requests []struct{ ID, Method, URL string }
	}
	if json.NewDecoder(r.Body).Decode(&asked) != nil || len(asked.Requests) > 20 {
		refuse(w, http.StatusBadRequest, "BadRequest", "A batch has at most 20 requests.")
		return
	}
	answers := []any{}
	for _, q := range slices.Backward(asked.Requests) {
		path, _, _ := strings.Cut(q.URL, "?")
		status, headers, body := m.manager(path)
		answers = append(answers, map[string]any{"id": q.ID, "status": status, "headers": headers, "body": body})
	}
	reply(w, http.StatusOK, map[string]any{"responses": answers})
}

// manager answers GET /users/{id}/manager within a batch.
func (m *Microsoft) manager(path string) (status int, headers map[string]string, body any) {
	headers = map[string]string{"Content-Type": "application/json"}
	if fault := m.note("/v1.0" + path); fault != nil {
		return fault.Status, fault.Header, json.RawMessage(errorBody("TooManyRequests", "Too many requests"))
	}
	m.directory.mu.Lock()
	defer m.directory.mu.Unlock()
	id, _ := url.PathUnescape(strings.TrimSuffix(strings.TrimPrefix(path, "/users/"), "/manager"))
	user := m.directory.accounts[id]
	if user == nil || m.directory.accounts[user.Manager] == nil || m.directory.accounts[user.Manager].removed {
		return http.StatusNotFound, headers,
			json.RawMessage(errorBody("Request_ResourceNotFound", "Resource 'manager' does not exist."))
	}
	manager := map[string]any{"@odata.type": "#microsoft.graph.user", "id": user.Manager, "mail": nil}
	if email := m.directory.email(user.Manager); email != "" {
		manager["mail"] = email
	}
	return http.StatusOK, headers, manager
}
