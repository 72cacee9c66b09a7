package v2_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// pagedHome is whose records some are.
type pagedHome struct {
	tenant     v2test.Partner
	client     domain.ClientID
	user       domain.UserID
	group      domain.GroupID
	collection domain.CollectionID // of tables that make them
}

// columns are those of a record.
type columns map[string]any

// pagedRecord is a record of a database table, or one that the table must not have. The
// columns of key identify it.
type pagedRecord struct {
	table, key string
	columns    columns
	absent     bool
}

// pagedRecords are the records of a home that stand for a row.
type pagedRecords struct {
	pagedHome
	id   [16]byte // beside the row's: ties of the sort are broken between them
	list []pagedRecord
}

// putIf puts a record of the home's client, or has the table miss it.
func (of *pagedRecords) putIf(there bool, table, key string, c columns) {
	c["client_id"] = of.client
	of.list = append(of.list, pagedRecord{table, "client_id, " + key, c, !there})
}

func (of *pagedRecords) put(table, key string, c columns) { of.putIf(true, table, key, c) }

// putByID puts a record whose id is all of its key.
func (of *pagedRecords) putByID(table string, c columns) {
	of.list = append(of.list, pagedRecord{table, "id", c, false})
}

// putUser puts a user with what the row says.
func (of *pagedRecords) putUser(id [16]byte, email string, group any, r pagedRow) {
	first, last, _ := strings.Cut(r.name, " ")
	of.put("users", "id", columns{
		"id": id, "email": email, "first_name": first, "last_name": last, "name_key": domain.SortKey(r.name), "status": r.status,
		"role": r.role, "group_id": group, "preferred_language": "en", "source": "api", "score": r.score,
		"created_at": r.created, "updated_at": r.updated,
	})
}

// putClient puts a client with what the row says.
func (of *pagedRecords) putClient(r pagedRow) {
	of.putByID("clients", columns{
		"id": r.uuid, "partner_id": of.tenant.ID, "name": r.name, "name_key": domain.SortKey(r.name),
		"external_id": fmt.Sprint("X", r.kind), "average_score": r.score, "summarized_at": v2test.Noon,
		"created_at": r.created, "updated_at": r.updated,
	})
}

// putMember has a collection have a user, or not.
func (of *pagedRecords) putMember(there bool, collection domain.CollectionID, r pagedRow) {
	of.putIf(there, "collection_members", "collection_id, user_id", columns{
		"collection_id": collection, "user_id": of.id, "added_at": r.created,
	})
}

// putExposure has a user's data be in a breach, or not.
func (of *pagedRecords) putExposure(there bool, user [16]byte, breach string, r pagedRow) {
	of.putIf(there, "exposures", "user_id, breach_name", columns{
		"user_id": user, "breach_name": breach, "severity": "low", "data_classes": []string{"Names"},
		"first_seen_at": r.created, "updated_at": r.updated,
	})
}

// store makes the database hold a row.
func (p *pagedTable) store(r pagedRow) {
	for i, home := range p.homes {
		id := r.uuid
		id[15] ^= byte(i)
		p.write(home, id, func(of *pagedRecords) { p.records(of, r) })
	}
	p.settle()
}

// remove deletes the records of a row.
func (p *pagedTable) remove(r pagedRow) {
	of := &pagedRecords{pagedHome: p.homes[0], id: r.uuid}
	p.records(of, r)
	for _, record := range slices.Backward(of.list) {
		record.absent = true
		p.exec(record)
	}
}

// settle does what follows a change.
func (p *pagedTable) settle() {
	if p.stored != nil {
		p.stored()
	}
}

// write makes the database hold the records of a home that fn puts, and miss the others.
func (p *pagedTable) write(home pagedHome, id [16]byte, fn func(of *pagedRecords)) {
	of := &pagedRecords{pagedHome: home, id: id}
	fn(of)
	for _, record := range of.list {
		p.exec(record)
	}
}

// exec makes the database hold a record, or miss it.
func (p *pagedTable) exec(r pagedRecord) {
	values := columns{}
	for name, value := range r.columns {
		if uuid, ok := value.([16]byte); ok {
			value = domain.UserID(uuid)
		}
		if id, ok := value.(interface{ UUID() string }); ok {
			value = id.UUID()
		}
		values[name] = value
	}
	text, err := json.Marshal(values)
	if err != nil {
		p.h.T.Fatal(err)
	}
	names := slices.Sorted(maps.Keys(values))
	all, excluded := strings.Join(names, ", "), "excluded."+strings.Join(names, ", excluded.")
	record := fmt.Sprintf("(SELECT %s FROM json_populate_record(NULL::%s, $1))", all, r.table)
	query := fmt.Sprintf("INSERT INTO %s (%s) %s ON CONFLICT (%s) DO UPDATE SET (%[2]s) = (%[5]s)",
		r.table, all, record, r.key, excluded)
	if r.absent {
		query = fmt.Sprintf("DELETE FROM %s WHERE (%s) = (SELECT %[2]s FROM %[3]s AS r)", r.table, r.key, record)
	}
	p.h.Exec(query, string(text))
}
