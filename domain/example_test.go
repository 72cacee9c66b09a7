package domain_test

import (
	"fmt"
	"net/http"

	"partnerapi/domain"
)

// An id has one text; one of another kind is refused.
func ExampleParseID() {
	id, err := domain.ParseID[domain.ClientKind]("cli_01h455vb4pex5vsknk084sn02q")
	fmt.Println(id, err)
	_, err = domain.ParseID[domain.UserKind]("cli_01h455vb4pex5vsknk084sn02q")
	fmt.Println(err != nil)
	// Output:
	// cli_01h455vb4pex5vsknk084sn02q <nil>
	// true
}

// A cursor is of one list: it does not open for another.
func ExampleCursorSealer() {
	cursors := domain.CursorSealer{Secret: []byte("secret")}
	cursor := cursors.Seal("clients.list name", domain.Position{Key: "acme", ID: "01890a5d-ac96-774b-bcce-b302099a8057"})
	p, err := cursors.Open("clients.list name", cursor)
	fmt.Println(p.Key, err)
	_, err = cursors.Open("clients.list created_at", cursor)
	fmt.Println(err != nil)
	// Output:
	// acme <nil>
	// true
}

// Only proxies that are trusted may name the address that a request comes from.
func ExampleRemoteAddress() {
	trusted, err := domain.ParseNetworks([]string{"10.0.0.0/8"})
	if err != nil {
		panic(err)
	}
	forwarded := http.Header{"X-Forwarded-For": {"203.0.113.7, 192.0.2.1, 10.1.1.1"}}
	fmt.Println(domain.RemoteAddress("10.0.0.1:443", forwarded["X-Forwarded-For"], trusted))
	fmt.Println(domain.RemoteAddress("198.51.100.9:443", forwarded["X-Forwarded-For"], trusted))
	// Output:
	// 192.0.2.1
	// 198.51.100.9
}

// What people do not see in a text from outside is escaped.
func ExampleVisible() {
	fmt.Println(domain.Visible("In\u202evoice\x1b[2J"))
	// Output: In\u{202e}voice\u{1b}[2J
}

// The message of an error repeats the first fault.
func ExampleErrInvalid() {
	err := domain.ErrInvalid("limit", "must be an integer")
	fmt.Println(err.Code, err.Fields)
	// Output: invalid_request [{limit must be an integer}]
}

// A user's job title comes before the department and the address.
func ExampleClassifyRole() {
	fmt.Println(domain.ClassifyRole("Chief Executive Officer", "Finance", "ana@example.com"))
	fmt.Println(domain.ClassifyRole("Gardener", "", "ana@example.com"))
	// Output:
	// executive
	// standard
}
