package mcp

import (
	"encoding/json"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// newest is the version of the protocol without sessions: its results say whether they
// are complete, and its requests name their version each.
const newest = "2026-07-28"

const versionHeader = "Mcp-Protocol-Version"

// speaksNewest reports whether the message of a session, which is of one message alone,
// is of the newest version.
func speaksNewest(session *sdk.ServerSession) bool {
	begun := session.InitializeParams()
	return begun != nil && begun.ProtocolVersion >= newest
}

// announcesNewest reports whether a request says so in its header.
func announcesNewest(r *http.Request) bool { return r.Header.Get(versionHeader) >= newest }

// completed returns a result of a tool that says that it is complete. The SDK says so of
// what its own handlers return, and exports no field for it.
func completed() (*sdk.CallToolResult, error) {
	out := new(sdk.CallToolResult)
	return out, json.Unmarshal([]byte(`{"resultType":"complete","content":[]}`), out)
}
