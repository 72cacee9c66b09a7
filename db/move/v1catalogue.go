package move

// The numbers of templates in version 1 have their own kind of line. They include those of the service's own
// templates, which each cell numbers for itself.

// importedNumbers is the SQL of the imported rows, alias n.
const importedNumbers = `json_to_recordset($1::json) AS n (id uuid, number integer)`

var v1Templates = catalogueKind{
	name: "template_number", table: "id_registry",
	export: `SELECT json_build_object('id', id, 'number', number)::text FROM id_registry
			WHERE kind = 'template' AND retired_at IS NULL ORDER BY number`,
	statements: []string{
		`UPDATE id_registry AS r SET retired_at = clock_timestamp() FROM ` + importedNumbers + `
				WHERE r.kind = 'template' AND r.id = n.id AND r.number <> n.number AND r.retired_at IS NULL
				RETURNING 0 AS added, 0 AS changed`,
		`DELETE FROM id_registry AS r USING ` + importedNumbers + `
				WHERE r.kind = 'template' AND r.id = n.id AND r.number = n.number AND r.retired_at IS NOT NULL
				RETURNING 0 AS added, 0 AS changed`,
		// As idmap import does: if an imported number is above the sequence, sets the sequence to the highest number
		// that it can generate and that is not above the imported numbers.
		`WITH moved AS (
				SELECT setval(sequence, own) FROM (
					SELECT seqrelid::regclass AS sequence, seqstart, max(number) - (max(number) - seqstart) % seqincrement AS own
					FROM ` + importedNumbers + ` JOIN pg_sequence ON seqrelid = 'id_registry_template'::regclass
					GROUP BY seqrelid, seqstart, seqincrement HAVING max(number) >= seqstart) AS imported
				WHERE own > coalesce(pg_sequence_last_value(sequence), 0))
			SELECT 0 AS added, 0 * count(*) AS changed FROM moved`,
		// The primary key refuses a number that another template has.
		`WITH done AS (
				INSERT INTO id_registry (kind, number, id) SELECT 'template', n.number, n.id FROM ` + importedNumbers + `
				WHERE NOT EXISTS (SELECT FROM id_registry AS r WHERE r.kind = 'template' AND r.id = n.id AND r.number = n.number)
				RETURNING 1), told AS (SELECT pg_notify('id_registry', '') FROM done LIMIT 1)
			SELECT 0 AS added, (SELECT count(*) FROM done) + 0 * (SELECT count(*) FROM told) AS changed`,
	},
}
