import { bodies } from './scenarios/bodies.ts'
import { changes } from './scenarios/changes.ts'
import { creates } from './scenarios/creates.ts'
import { credentials } from './scenarios/credentials.ts'
import { events } from './scenarios/events.ts'
import { faults } from './scenarios/faults.ts'
import { imports } from './scenarios/imports.ts'
import { mediaTypes } from './scenarios/media-types.ts'
import { metrics } from './scenarios/metrics.ts'
import { pages } from './scenarios/pages.ts'
import { protocol } from './scenarios/protocol.ts'
import { reads } from './scenarios/reads.ts'
import type { Scenario } from './scenarios/scenario.ts'
import { settings } from './scenarios/settings.ts'

/** Every scenario. Each GET is followed by a HEAD, which gets the same answer without its body. */
export const scenarios: readonly Scenario[] = [
  ...creates,
  ...reads,
  ...changes,
  ...mediaTypes,
  ...imports,
  ...events,
  ...credentials,
  ...metrics,
  ...pages,
  ...bodies,
  ...protocol,
  ...faults,
  ...settings,
].flatMap((scenario) => [scenario, ...toHead(scenario)])

function toHead(scenario: Scenario): Scenario[] {
  const { request } = scenario
  const head = { ...scenario, title: `HEAD: ${scenario.title}`, body: '' }
  if (Buffer.isBuffer(request)) return []
  if (typeof request === 'string') {
    return request.startsWith('GET ') ? [{ ...head, request: request.replace('GET', 'HEAD') }] : []
  }
  return request.method === undefined ? [{ ...head, request: { ...request, method: 'HEAD' } }] : []
}
