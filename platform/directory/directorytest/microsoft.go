package directorytest

import (
	"encoding/json"
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

// ForgetPositions makes Graph answer 410 to all links it has issued.
func (m *Microsoft) ForgetPositions() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.generation++
}

func (m *Microsoft) current() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.generation
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

// link is the content of the tokens in links.
type link struct {
	Generation int
	Select     string
	All        bool  // every account, from the place At on
	From       int64 // the change after which the round begins
	Since      int64 // changes after this one
	Until      int64 // and not after this one; with All, the last before the round
	At         int
}

// delta answers GET /users/delta.
func (m *Microsoft) delta(w http.ResponseWriter, r *http.Request) {
	m.directory.mu.Lock()
	defer m.directory.mu.Unlock()
	now := m.directory.seq
	at := link{Generation: m.current(), Select: r.URL.Query().Get("$select"), All: true, Until: now}
	skip, since := r.URL.Query().Get("$skiptoken"), r.URL.Query().Get("$deltatoken")
	if token := skip + since; token != "" {
		at = link{}
		if !unseal(token, &at) {
			refuse(w, http.StatusBadRequest, "Request_BadRequest", "Badly formed token.")
			return
		}
		if at.Generation != m.current() {
			refuse(w, http.StatusGone, "SyncStateNotFound", "The sync state generation is not found; a full sync is needed.")
			return
		}
		if since != "" {
			at.Until = now
		}
	}

	size := m.size(preferred(r), 200)
	answer := map[string]any{"@odata.context": m.URL + "/v1.0/$metadata#users(" + at.Select + ")"}
	var page []*entry
	next, more := at, false
	if at.All {
		page, next.At, more = m.everyone(at.At, size)
	} else {
		page, next.Since, more = m.changes(at, size)
	}
	value := []any{}
	for _, e := range page {
		value = append(value, e.delta(at))
	}
	answer["value"] = value
	if more {
		answer["@odata.nextLink"] = m.URL + "/v1.0/users/delta?" + url.Values{"$skiptoken": {seal(next)}}.Encode()
	} else {
		done := link{Generation: at.Generation, Select: at.Select, From: at.Until, Since: at.Until}
		answer["@odata.deltaLink"] = m.URL + "/v1.0/users/delta?" + url.Values{"$deltatoken": {seal(done)}}.Encode()
	}
	reply(w, http.StatusOK, answer)
}

// everyone returns a page of the accounts from an index on.
func (m *Microsoft) everyone(at, size int) (page []*entry, next int, more bool) {
	order := m.directory.order
	for ; at < len(order) && len(page) < size; at++ {
		if e := m.directory.accounts[order[at]]; !e.removed {
			page = append(page, e)
		}
	}
	return page, at, at < len(order)
}

// changes returns a page of the accounts that changed.
func (m *Microsoft) changes(at link, size int) (page []*entry, next int64, more bool) {
	for _, e := range m.directory.accounts {
		if e.seq > at.Since && e.seq <= at.Until {
			page = append(page, e)
		}
	}
	slices.SortFunc(page, func(a, b *entry) int { return int(a.seq - b.seq) })
	if len(page) <= size {
		return page, 0, false
	}
	return page[:size], page[size-1].seq, true
}

// graphTexts returns the texts of an account by their names in Graph.
func graphTexts(a Account) map[string]string {
	return map[string]string{
		"displayName": strings.TrimSpace(a.First + " " + a.Last), "givenName": a.First, "surname": a.Last, "mail": a.Email,
		"department": a.Department, "jobTitle": a.Title, "preferredLanguage": a.Language,
	}
}

// delta returns an account as a delta query does: with the properties that changed since the round before, and null
// for those removed.
func (e *entry) delta(at link) map[string]any {
	if e.removed {
		return map[string]any{"id": e.ID, "@removed": map[string]any{"reason": "changed"}}
	}
	user := e.list(at.Select)
	for name := range graphTexts(e.Account) {
		if e.changed[name] <= at.From {
			delete(user, name)
		}
	}
	return user
}

// list returns an account as lists do: with null for properties that are not set.
func (e *entry) list(selected string) map[string]any {
	texts, user := graphTexts(e.Account), map[string]any{}
	for name := range strings.SplitSeq(selected, ",") {
		text, known := texts[name]
		switch {
		case known && text != "":
			user[name] = text
		case known:
			user[name] = nil
		case name == "id":
			user[name] = e.ID
		case name == "accountEnabled":
			user[name] = !e.Disabled
		case name == "userType" && e.Guest:
			user[name] = "Guest"
		case name == "userType":
			user[name] = "Member"
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
	list := m.directory.members(r.PathValue("id"))
	top, _ := strconv.Atoi(query.Get("$top"))
	at, _ := strconv.Atoi(query.Get("$skiptoken"))
	at = min(at, len(list))
	end := min(at+m.size(top, 999), len(list))

	value := []any{}
	for _, e := range list[at:end] {
		value = append(value, e.list(query.Get("$select")))
	}
	answer := map[string]any{"@odata.count": len(list), "value": value}
	if end < len(list) {
		query.Set("$skiptoken", strconv.Itoa(end))
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
