package directorytest

// Documented is a behavior of a vendor's service that a server follows.
type Documented struct {
	// Name names the behavior; a test of this name uses it (TestDocumented).
	Name string
	// Says is the behavior, in short.
	Says string
	// Sources are where the vendor, or a report confirmed by the vendor, describes it.
	Sources []string
}

const (
	deltaOverview  = "https://learn.microsoft.com/en-us/graph/delta-query-overview"
	deltaUsers     = "https://learn.microsoft.com/en-us/graph/delta-query-users"
	deltaReference = "https://learn.microsoft.com/en-us/graph/api/user-delta"
	graphErrors    = "https://learn.microsoft.com/en-us/graph/errors"
	graphThrottled = "https://learn.microsoft.com/en-us/graph/throttling"
	listManager    = "https://learn.microsoft.com/en-us/graph/api/user-list-manager"
	googleUsers    = "https://developers.google.com/workspace/admin/directory/reference/rest/v1/users"
	googleList     = "https://developers.google.com/workspace/admin/directory/reference/rest/v1/users/list"
	googleLimits   = "https://developers.google.com/workspace/admin/directory/v1/limits"
	googleErrors   = "https://developers.google.com/workspace/admin/reseller/v1/support/directory_api_common_errors"
)

// Behaviors are the documented behaviors that the servers follow.
var Behaviors = []Documented{
	// Microsoft Graph
	{"select", "$select of the first request decides which changes are reported, and the links carry it.",
		[]string{deltaOverview + "#optional-query-parameters", deltaUsers + "#initial-request"}},
	{"manager", "Changes of the manager are reported as manager@delta, if manager is selected. $expand is ignored.",
		[]string{deltaOverview + "#optional-query-parameters", "https://github.com/microsoftgraph/microsoft-graph-docs/issues/6194"}},
	{"manager deleted", "The deletion of an object is no change of the links to it.",
		[]string{"https://github.com/microsoftgraph/microsoft-graph-docs-contrib/issues/1774"}},
	{"manager apart", "An account may be returned again for its manager, on another page.",
		[]string{"https://github.com/microsoftgraph/microsoft-graph-docs/issues/5363"}},
	{"manager by request", "The manager is read by a request for each account. There may be none (404), or a contact.",
		[]string{listManager}},
	{"repeated whole", "An account that changes during a round may be returned again, with all of its properties.",
		[]string{deltaOverview + "#resource-representation-in-the-delta-query-response", deltaReference + "#response"}},
	{"repeated in part", "A changed account is returned with at least the properties that changed.",
		[]string{deltaOverview + "#resource-representation-in-the-delta-query-response"}},
	{"replays", "A change may be reported again in the next round.", []string{deltaOverview + "#replays"}},
	{"order", "The accounts of a round come in any order.", []string{deltaOverview + "#optional-query-parameters"}},
	{"absent", "A property that was never set is absent; one that was cleared is null.", []string{deltaReference + "#response"}},
	{"null", "A property without a value is null in lists.", []string{"https://learn.microsoft.com/en-us/graph/api/resources/user"}},
	{"empty pages", "A page may be empty and have a nextLink.", []string{deltaOverview}},
	{"removed", "A deleted account is reported with the reason changed, and restored without an annotation.",
		[]string{deltaUsers + "#initial-response"}},
	{"purged", "An account deleted for good is reported with the reason deleted. Another one may have its address.",
		[]string{deltaUsers + "#initial-response"}},
	{"removed at first", "The first round may contain removed accounts.",
		[]string{deltaOverview + "#resource-representation-in-the-delta-query-response"}},
	{"gone", "A link expires, within a round too: 410, with the code SyncStateNotFound.",
		[]string{deltaOverview + "#token-duration", graphErrors}},
	{"gone with location", "A 410 may have a Location, a link with an empty token: everything is to be read again.",
		[]string{deltaOverview + "#synchronization-reset"}},
	{"graph throttled", "429 has a Retry-After in general, 503 may have one.", []string{graphThrottled, graphErrors}},
	{"group lag", "Lists of members with ConsistencyLevel eventual show changes later.",
		[]string{"https://learn.microsoft.com/en-us/graph/api/group-list-transitivemembers", "https://learn.microsoft.com/en-us/graph/aad-advanced-queries"}},

	// Google's Admin SDK
	{"google empty", "Empty values and lists are absent.", []string{googleUsers}},
	{"google mailbox", "isMailboxSetup says whether the address has a mailbox.", []string{googleUsers + "#User.FIELDS.is_mailbox_setup"}},
	{"google quotas", "An exceeded quota returns 403 (429 for some), with one of four reasons.",
		[]string{googleLimits, "https://developers.google.com/admin-sdk/directory/v1/limits"}},
	{"google throttled", "429 and 503 have no Retry-After: clients back off.", []string{googleLimits}},
	{"google refusals", "Other reasons of 403 are refusals.", []string{googleErrors}},
	{"google pages", "A page token that is not known is refused with 400.", []string{googleList}},
}
