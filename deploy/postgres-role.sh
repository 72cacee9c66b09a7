#!/usr/bin/env bash
# Creates the service's role, which is not a superuser, and its database. The PostgreSQL image
# runs this when it initializes a new volume.
set -euo pipefail
psql --username="${POSTGRES_USER:-postgres}" --dbname=postgres --set=ON_ERROR_STOP=1 --set=password="$DATABASE_PASSWORD" <<'SQL'
CREATE ROLE partnerapi LOGIN PASSWORD :'password';
CREATE DATABASE partnerapi OWNER partnerapi ENCODING 'UTF8' TEMPLATE template0;
SQL
