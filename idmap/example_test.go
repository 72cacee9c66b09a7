package idmap_test

import (
	"encoding/json"
	"fmt"

	"partnerapi/domain"
	"partnerapi/idmap"
)

// A Ref is a number outside; Resolve finds the id.
func ExampleRef() {
	var body struct {
		Client idmap.Ref[domain.ClientKind]     `json:"clientId"`
		Report idmap.TextRef[domain.ReportKind] `json:"reportId"`
	}
	fmt.Println(json.Unmarshal([]byte(`{"clientId": 7, "reportId": "12"}`), &body), body.Client.Number, body.Report.Number)
	fmt.Println(json.Unmarshal([]byte(`{"clientId": 0}`), &body))
	// Output:
	// <nil> 7 12
	// must be an integer from 1 to 2147483647
}

// A translator sets the id, and NumberBy then the numbers, all at once.
func ExampleNumberBy() {
	rows := []idmap.Ref[domain.ClientKind]{idmap.RefTo(domain.ClientID{1}), idmap.RefTo(domain.ClientID{2})}
	err := idmap.NumberBy(func(keys []idmap.IDKey) (map[idmap.IDKey]int64, error) {
		numbers := map[idmap.IDKey]int64{}
		for _, key := range keys {
			numbers[key] = 100 + int64(key.ID[0])
		}
		return numbers, nil
	}, &rows)
	text, _ := json.Marshal(rows)
	fmt.Println(string(text), err)
	// Output: [101,102] <nil>
}
