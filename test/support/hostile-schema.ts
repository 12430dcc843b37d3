import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { query } from './postgres.ts'

const sources = join(import.meta.dirname, '..', '..', 'src', 'store', 'postgres')
const types = ['integer', 'bigint', 'text', 'varchar', 'bytea', 'numeric', 'anyelement']
const operators = ['=', '<>', '<', '>', '<=', '>=', '+', '-', '*', '||']

/** Every name that is followed by a parenthesis in the statements of the engine. */
function findFunctionNames(): string[] {
  const text = globSync('*.ts', { cwd: sources })
    .map((file) => readFileSync(join(sources, file), 'utf8'))
    .join('\n')
  return [...new Set([...text.matchAll(/\b([a-z][a-z0-9_]+)\(/g)].map(([, name = '']) => name))]
}

/**
 * Fills a schema with what another user of the database could put there: functions, operators,
 * types and a collation under the names of PostgreSQL's own, for other types and for the same. Each
 * counts its calls and raises an error. The address must set `search_path` to `pg_catalog`, or the
 * traps would catch those who lay them.
 */
export async function fillWithTraps(url: string, schema: string): Promise<void> {
  const names = findFunctionNames().map((name) => `'${name}'`)
  await query(
    url,
    `CREATE SCHEMA IF NOT EXISTS ${schema};
    GRANT USAGE ON SCHEMA ${schema} TO PUBLIC;
    CREATE SEQUENCE IF NOT EXISTS public.calls;
    GRANT USAGE ON SEQUENCE public.calls TO PUBLIC;
    CREATE FUNCTION ${schema}.spring() RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
      $$ BEGIN
        PERFORM pg_catalog.nextval('public.calls');
        RAISE EXCEPTION 'a trap was called';
      END $$;
    DO $do$
    DECLARE
      body text := 'RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT ${schema}.spring() $$';
      types text[] := ARRAY[${types.map((type) => `'${type}'`)}];
      arguments text;
      name text;
      a text;
      b text;
    BEGIN
      FOR name IN SELECT DISTINCT proname FROM pg_catalog.pg_proc
          WHERE pronamespace = 'pg_catalog'::regnamespace AND proname = ANY(ARRAY[${names}]) LOOP
        FOR arguments IN
          SELECT '' UNION SELECT one FROM unnest(types) AS one
          UNION SELECT one || ', ' || two FROM unnest(types) AS one, unnest(types) AS two
          UNION SELECT pg_catalog.oidvectortypes(proargtypes) FROM pg_catalog.pg_proc
            WHERE proname = name AND pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f'
              AND NOT proargtypes::oid[] && ARRAY['internal'::regtype, '"any"'::regtype]::oid[]
        LOOP
          EXECUTE format('CREATE OR REPLACE FUNCTION ${schema}.%I(%s) %s', name, arguments, body);
        END LOOP;
      END LOOP;
      FOREACH a IN ARRAY types LOOP
        FOREACH b IN ARRAY types LOOP
          EXECUTE format('CREATE FUNCTION ${schema}.operate(%s, %s) %s', a, b, body);
          FOREACH name IN ARRAY ARRAY[${operators.map((name) => `'${name}'`)}] LOOP
            EXECUTE format('CREATE OPERATOR ${schema}.%s (LEFTARG = %s, RIGHTARG = %s, '
              'FUNCTION = ${schema}.operate)', name, a, b);
          END LOOP;
        END LOOP;
      END LOOP;
    END $do$;
    CREATE DOMAIN ${schema}.text AS pg_catalog.text CHECK (${schema}.spring());
    CREATE DOMAIN ${schema}.bytea AS pg_catalog.bytea CHECK (${schema}.spring());
    CREATE DOMAIN ${schema}.int8 AS pg_catalog.int8 CHECK (${schema}.spring());
    CREATE COLLATION ${schema}."C" (provider = libc, locale = 'C')`,
  )
}

/** How often any of them was called. */
export async function countCalls(url: string): Promise<number> {
  const [row] = await query<{ calls: string }>(
    url,
    'SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS calls FROM public.calls',
  )
  return Number(row?.calls)
}
