package v1compat

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"partnerapi/domain"
	"partnerapi/idmap"
)

type fields = map[string]any

// answer is what a version says, in words that are neither's: an error's code
// and message without the name of the field, or objects with the fields that it
// shows.
type answer struct {
	code, message string
	objects       []fields
}

// surface is a version of the interface as its callers use it. Objects are
// named by their UUIDs, and times are texts. What one version does in one
// request and the other in several, a surface does as its callers have to.
type surface interface {
	partner() answer
	clients() answer
	createClient(name string) answer
	users(client, status string) answer
	// createUser takes, beside the fields that both versions have, the
	// "collection" that the user is put in.
	createUser(client string, body fields) answer
	updateUser(user string, body fields) answer

	collections(client string) answer
	createCollection(client string, body fields) answer
	members(client, collection string) answer
	// addMember takes the user out of the client's other collections.
	addMember(client, collection, user string) answer
	removeMember(client, collection, user string) answer

	policies(client string) answer
	policyUsers(client, policy, status string) answer
	// exposures counts what was found from and through a time or a day; "" is
	// no bound.
	exposures(client, from, through string) answer

	// reports are the oldest first, without links; download shows one, and whether
	// it has a link.
	reports(client string) answer
	download(client, report string) answer

	training(user string) answer
	// send is for now where at is "".
	send(user, template, at string) answer
	// results are of what was sent, newest first.
	results(user string) answer
	// emails are those of the 30 days from start, or the last 30 where it is
	// ""; of v1's types where there are none.
	emails(user string, types []string, start string) answer
}

// shape is the objects of a list: the name that the versions share of each
// field, v1's and v2's, and the kind of the numbers that v1 has for ids.
type shape struct {
	kind   idmap.Kind
	fields [][3]string
}

var (
	clientShape = shape{idmap.Client, [][3]string{
		{"id", "id", "id"}, {"name", "client_name", "name"}, {"created", "created_date", "created_at"},
		{"active", "user_count", "users.active"}, {"inactive", "inactive_user_count", "users.inactive"},
		{"on track", "training_on_track_rate", "training.on_track_rate"},
	}}
	userShape = shape{0, [][3]string{
		{"id", "id", "id"}, {"email", "email", "email"}, {"first", "first_name", "first_name"}, {"last", "last_name", "last_name"},
		{"department", "department", "department"}, {"status", "status", "status"}, {"role", "role", "role"},
		{"language", "preferred_language", "preferred_language"}, {"created", "created_date", "created_at"},
		{"on track", "training_on_track", "training.on_track"}, {"next", "next_course", "training.next_course.title"},
		{"behind", "courses_behind", "training.overdue_count"}, {"score", "risk_score", "risk.score"},
	}}
	partnerShape = shape{0, [][3]string{{"name", "partner_name", "name"}, {"created", "created_date", "created_at"}}}
	adminShape   = shape{0, [][3]string{
		{"id", "id", "id"}, {"name", "name", "name"}, {"email", "email", "email"}, {"role", "role", "role"}, {"created", "created_date", "created_at"},
	}}
	collectionShape = shape{idmap.Collection, [][3]string{
		{"id", "id", "id"}, {"name", "name", "name"}, {"description", "description", "description"},
		{"members", "member_count", "member_count"}, {"created", "created_date", "created_at"},
	}}
	memberShape = shape{0, [][3]string{{"id", "user_infima_id", "user_id"}, {"name", "name", "name"}, {"email", "email", "email"}}}
	policyShape = shape{idmap.Policy, [][3]string{
		{"id", "id", "id"}, {"title", "title", "title"}, {"description", "description", "description"}, {"version", "version", "version"},
		{"scope type", "scope_type", "scope_type"}, {"scope", "scope_id", "scope_id"}, {"must sign", "requires_acknowledgment", "requires_acknowledgment"},
		{"renewal", "renewal_period_days", "renewal_period_days"}, {"created", "created_date", "created_at"}, {"audience", "audience_user_count", "audience_user_count"},
		{"signed", "acknowledged_count", "acknowledged_count"}, {"percent", "acknowledged_percentage", "acknowledged_percentage"},
	}}
	policyUserShape = shape{0, [][3]string{
		{"id", "id", "user_id"}, {"name", "name", "name"}, {"email", "email", "email"}, {"signed", "acknowledged", "acknowledged"}, {"at", "acknowledged_at", "acknowledged_at"},
	}}
	exposureShape = shape{0, [][3]string{
		{"id", "id", "user_id"}, {"email", "email", "email"}, {"first", "first_name", "first_name"}, {"last", "last_name", "last_name"},
		{"resolved", "resolved_exposures", "resolved_exposures"}, {"unresolved", "unresolved_exposures", "unresolved_exposures"},
	}}
	reportShape = shape{idmap.Report, [][3]string{
		{"id", "report_id", "id"}, {"type", "report_type", "type"}, {"created", "created_date", "created_at"}, {"link", "download_link", "download_url"},
	}}
	trainingShape = shape{0, [][3]string{
		{"order", "order", "order"}, {"course", "course_name", "title"}, {"completed", "completed", "completed"}, {"at", "completed_date", "completed_at"},
	}}
	sendShape   = shape{0, [][3]string{{"at", "at", "send_at"}}}
	resultShape = shape{0, [][3]string{{"status", "status", "status"}, {"at", "status_date", "status_date"}}}
	emailShape  = shape{0, [][3]string{
		{"at", "event_time", "sent_at"}, {"from", "from_email", "from_email"}, {"subject", "subject", "subject"},
		{"method", "send_method", "send_method"}, {"type", "message_type", "message_type"},
	}}
	// nothing is an answer that only says that something was done.
	nothing = shape{}
)

// The names that a version has in a shape.
const (
	inV1 = 1
	inV2 = 2
)

// common is an object of a version in the names that both share. Of a list's
// objects a field that is left out is "", as what is null: v1 has no null. The
// answer to a change may leave fields out.
func (s shape) common(object fields, version int, listed bool) fields {
	out := fields{}
	for _, names := range s.fields {
		var value any = object
		path := strings.Split(names[version], ".")
		if _, there := object[path[0]]; !there && !listed {
			continue
		}
		for _, part := range path {
			inner, _ := value.(fields)
			value = inner[part]
		}
		if value == nil {
			value = ""
		}
		if names[0] == "created" || names[0] == "at" {
			value = seconds(value)
		}
		out[names[0]] = value
	}
	return out
}

// seconds is a time, as exact as v1 writes it; "" for none, as for the zero date
// by which v1 says so.
func seconds(value any) any {
	text, _ := value.(string)
	if text == "" || text == "0001-01-01T00:00:00Z" {
		return ""
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.Location() != time.UTC {
		return "not a time in UTC: " + text
	}
	return at.Unix()
}

// refused is an error in the words of neither version.
func refused(code, message any) answer {
	text, _ := message.(string)
	if code == string(domain.InvalidRequest) {
		_, text, _ = strings.Cut(text, " ")
		if text == "must be before until" { // v1 calls it end
			text = "must be before end"
		}
	}
	return answer{code: fmt.Sprint(code), message: text}
}

// absent is the answer for an object that is not there.
func absent(noun string) answer {
	return refused(string(domain.NotFound), domain.ErrNotFound(noun).Message)
}

// scopeKinds are the kinds of what policies' audiences are.
var scopeKinds = map[any]idmap.Kind{
	string(domain.TenantScope): idmap.Client, string(domain.GroupScope): idmap.Group, string(domain.CollectionScope): idmap.Collection,
}

// unnumbered stands for an object that is not there.
const unnumbered = "2147483647"

// numberFor is the number of an object by its UUID, or unnumbered.
func (s *service) numberFor(kind idmap.Kind, id string) string {
	s.T.Helper()
	parsed, err := domain.ParseUUID[domain.ClientKind](id)
	if err != nil {
		s.T.Fatal(err)
	}
	key := idmap.IDKey{Kind: kind, ID: idmap.UUID(parsed)}
	found, err := s.registry.Numbers(s.T.Context(), []idmap.IDKey{key})
	if err != nil {
		s.T.Fatal(err)
	}
	if found[key] == 0 {
		return unnumbered
	}
	return strconv.FormatInt(found[key], 10)
}
