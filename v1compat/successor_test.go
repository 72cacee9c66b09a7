package v1compat

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// successorOf is the target of the link to the successor; "" for none.
func successorOf(t testing.TB, r v2test.Response) string {
	t.Helper()
	var found []string
	for _, link := range r.Header["Link"] {
		if len(link) > 1000 {
			t.Errorf("a link of %d bytes", len(link))
		}
		target, rest, _ := strings.Cut(strings.TrimPrefix(link, "<"), ">")
		if rest == `; rel="successor-version"` {
			found = append(found, target)
		}
	}
	if len(found) > 1 {
		t.Errorf("%d successors: %q", len(found), found)
	}
	return strings.Join(found, " ")
}

// comparable are the objects of an answer, without the members that v2 has no value for.
func (s *service) comparable(r *route, objects []jsontext.Value) (list []string) {
	s.T.Helper()
	later, err := r.laterFields(s.facade.Release)
	if err != nil {
		s.T.Fatal(err)
	}
	for _, object := range objects {
		var members map[string]any
		if err := json.Unmarshal(object, &members); err != nil {
			s.T.Fatal(err)
		}
		maps.DeleteFunc(members, func(name string, _ any) bool {
			return slices.Contains(r.GivenUp, name) || slices.Contains(later, name) || r.ID == "sentemails" && name == "user_infima_id" // in v2's path
		})
		text, err := json.Marshal(members, json.Deterministic(true))
		if err != nil {
			s.T.Fatal(err)
		}
		list = append(list, string(text))
	}
	if r.Reordered {
		slices.Sort(list)
	}
	return list
}

// objectsIn are the objects of a page, which are a member of the body, or the body itself.
func objectsIn(t testing.TB, r v2test.Response, member string) (objects []jsontext.Value) {
	var page map[string]jsontext.Value
	r.Into(&page)
	if page[member] == nil {
		return []jsontext.Value{r.Body}
	}
	if err := json.Unmarshal(page[member], &objects); err != nil {
		t.Fatal(err)
	}
	return objects
}

// followLink holds an answer of v1 to what the link to its successor leads to with the
// same key. An answer of failure has no such link.
func (s *service) followLink(key string, r *route, got v2test.Response) {
	s.T.Helper()
	target := successorOf(s.T, got)
	switch {
	case got.Status >= http.StatusBadRequest && target != "":
		s.T.Errorf("status %d leads to %s", got.Status, target)
	case got.Status >= http.StatusBadRequest:
	case target == "":
		s.T.Errorf("no link: %s", got.Body)
	default:
		s.leadsTo(key, r, got, target)
	}
}

// leadsTo is followLink for a link that is there: v2 answers with the same objects, as the
// route's translator reads them, in the same order where it has v1's.
func (s *service) leadsTo(key string, r *route, got v2test.Response, target string) {
	s.T.Helper()
	followed := s.Get(target, key)
	if followed.Status != http.StatusOK {
		s.T.Errorf("%s is answered %d: %s", target, followed.Status, followed.Body)
		return
	}
	translated, err := translatorOf(r).Expect(objectsIn(s.T, followed, "data"), op.Latest, func(keys []idmap.IDKey) (map[idmap.IDKey]int64, error) {
		return s.registry.Numbers(s.T.Context(), keys)
	})
	if err != nil {
		s.T.Fatal(err)
	}
	items := make([]jsontext.Value, len(translated))
	for i, object := range translated {
		items[i] = object.Item
	}
	if led, want := s.comparable(r, items), s.comparable(r, objectsIn(s.T, got, "items")); !slices.Equal(led, want) {
		s.T.Errorf("%s leads to\n%q, but v1 shows\n%q", target, led, want)
	}
}

// TestSuccessors: in each release, every route's answer of success links to its
// successor where the release has it, and to nothing else. A read's link leads to
// what v1 shows, and a write's is a route of v2.
func TestSuccessors(t *testing.T) {
	t.Parallel()
	for _, release := range []op.Release{op.V2_0, op.V2_1, op.V2_2, op.V2_3, op.V2_4, op.V2_5} {
		t.Run(release.String(), func(t *testing.T) {
			t.Parallel()
			s := newScene(t, setup{Options: v2test.Options{Release: release}})
			for _, r := range s.facade.routes {
				if r.Additive {
					continue
				}
				good := s.good(r)
				got := s.Do(r.Method, good.path, s.Key, good.body).Want(r.Status)
				s.checkSuccessor(t, r, got, release)
				if r.Method == http.MethodGet {
					head := s.Do("HEAD", good.path, s.Key, nil)
					if a, b := head.Header["Link"], got.Header["Link"]; !slices.Equal(a, b) {
						t.Errorf("HEAD %s links to %q, GET to %q", good.path, a, b)
					}
				}
				refused := s.Do(r.Method, good.path, "pk_wrong", good.body).Want(401)
				if target := successorOf(t, refused); target != "" {
					t.Errorf("%s: an error leads to %s", r.ID, target)
				}
			}
		})
	}
}

func (s *scene) checkSuccessor(t *testing.T, r *route, got v2test.Response, release op.Release) {
	t.Helper()
	target, meta := successorOf(t, got), r.Successor.Meta()
	switch {
	case (target == "") == (meta.Since <= release):
		t.Errorf("%s: release %s links to %q", r.ID, release, target)
	case target == "":
	case r.operation.Meta().Scope == domain.Read:
		s.followLink(s.Key, r, got)
	case target != s.writesTo()[r.ID]:
		t.Errorf("%s leads to %s, not to %s", r.ID, target, s.writesTo()[r.ID])
	}
}

// writesTo are the paths of v2 that v1's writes lead to: each to the same write.
func (s *scene) writesTo() map[string]string {
	client, user := "/v2/clients/"+s.client.String(), "/v2/users/"+s.userID.String()
	members := client + "/collections/" + s.collectionID.String() + "/members"
	return map[string]string{
		"create-client": "/v2/clients", "create-user": client + "/users", "update-user": user, "create-collection": client + "/collections",
		"add-collection-member": members, "remove-collection-member": members + "/" + s.leaver().String(), "sendphishing": client + "/phishing/sends",
	}
}

// TestSuccessorOfIDs: the link names the clients that the key reaches alone, and
// does not distinguish another's number from an unused one.
func TestSuccessorOfIDs(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	tenant, stranger := s.AddPartner("Own"), s.AddPartner("Stranger")
	own := make([]domain.ClientID, 40)
	numbers := make([]string, len(own))
	for i := range own {
		own[i] = db.NewID[domain.ClientKind]()
		s.insertClient(tenant.ID, own[i], fmt.Sprint("client ", i), noon)
		numbers[i] = s.number(own[i])
	}
	theirs := s.number(s.AddClient(stranger, "Theirs").ID)
	const list = "/v2/clients?ids="
	for query, want := range map[string]string{
		"ids=":                        list + "&sort=created_at&limit=20",
		"ids=N":                       list + "&sort=created_at&limit=20",
		"ids=1,0":                     "refused",
		"ids=" + numbers[1]:           list + own[1].String() + "&sort=created_at&limit=20",
		"ids=" + numbers[1] + ",N":    list + own[1].String() + "&sort=created_at&limit=20",
		"ids=N&ids=" + numbers[1]:     list + own[1].String() + "&sort=created_at&limit=20",
		"limit=1&ids=N," + numbers[1]: list + own[1].String() + "&sort=created_at&limit=1",
		"limit=1&ids=" + numbers[2] + "," + numbers[1]:                    list + own[2].String() + "," + own[1].String() + "&sort=created_at&limit=1",
		"limit=1&ids=" + numbers[2] + "," + numbers[1] + ",N":             "",
		"limit=1&ids=" + numbers[2] + "," + numbers[2] + "," + numbers[2]: list + own[2].String() + "," + own[2].String() + "," + own[2].String() + "&sort=created_at&limit=1",
		"ids=" + strings.Join(numbers[:20], ","):                          list + "IDS&sort=created_at&limit=20",
		"ids=" + strings.Join(numbers, ","):                               "", // longer than 1,000 bytes
		"limit=50&ids=" + strings.Join(numbers[:35], ",") + ",N":          "",
		"limit=50&offset=1&ids=" + strings.Join(numbers[:35], ","):        "",
		"limit=50&offset=1&ids=" + numbers[1]:                             "",
		"limit=7&unknown=1":                                               "/v2/clients?sort=created_at&limit=7",
		"limit=100000":                                                    "/v2/clients?sort=created_at&limit=50",
		"limit=-1":                                                        "/v2/clients?sort=created_at&limit=1",
	} {
		var links []string
		for _, stands := range []string{theirs, unnumbered} {
			r := s.Get("/v1/clients?"+strings.ReplaceAll(query, "N", stands), tenant.Key)
			links = append(links, successorOf(t, r))
			if links[0] != "" {
				s.followLink(tenant.Key, s.route("clients"), r)
			}
		}
		var texts []string
		for _, id := range own[:20] {
			texts = append(texts, id.String())
		}
		want = strings.TrimPrefix(strings.ReplaceAll(want, "IDS", strings.Join(texts, ",")), "refused")
		if links[0] != links[1] || parametersOf(links[0]) != parametersOf(want) {
			t.Errorf("%s leads to %q for another's, to %q for an unused one, not to %q", query, links[0], links[1], want)
		}
	}
}

// parametersOf is a target with its parameters in order.
func parametersOf(target string) string {
	path, query, _ := strings.Cut(target, "?")
	parameters := strings.Split(query, "&")
	slices.Sort(parameters)
	return path + "?" + strings.Join(parameters, "&")
}
