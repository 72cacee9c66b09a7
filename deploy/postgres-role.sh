#!/usr/bin/env bash
# Makes the service's role, which is no superuser, and its database. The image of PostgreSQL
# runs this when it makes a new volume.
set -euo pipefail
psql --username="${POSTGRES_USER:-postgres}" --dbname=postgres --set=ON_ERROR_STOP=1 --set=password="$DATABASE_PASSWORD" <<'SQL'
CREATE ROLE partnerapi LOGIN PASSWORD :'password';
CREATE DATABASE partnerapi OWNER partnerapi ENCODING 'UTF8' TEMPLATE template0;
SQL
