import { answered, get, metricsToken, refused, type Scenario } from './scenario.ts'

const byPrometheus =
  'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,' +
  'application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.3,*/*;q=0.1'
const prometheusText = {
  body: /^# HELP plant_store_build_info .*\n# TYPE plant_store_build_info gauge\n/,
  headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8', vary: 'Accept' },
}

const own = { Authorization: `Bearer ${metricsToken}` }

/** The metrics of the operator. */
export const metrics: Scenario[] = [
  answered('metrics', get('/metrics'), prometheusText),
  answered('metrics with a token that may read no plants', get('/metrics', own), prometheusText),
  answered('metrics as Prometheus asks for them', get('/metrics', { Accept: byPrometheus }), {
    body: /\n# EOF\n$/,
    headers: { 'content-type': 'application/openmetrics-text; version=1.0.0; charset=utf-8' },
  }),
  ...['*/*', 'text/*', 'text/plain', 'application/json', ''].map((Accept) =>
    answered(`metrics with "Accept: ${Accept}"`, get('/metrics', { Accept }), prometheusText),
  ),
  refused(40300, 'a get with a token that may read only metrics', get('/plants/1', own)),
]
