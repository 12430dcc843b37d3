import { isGeneratorBound, median, ratio } from '../figures.ts'
import type { Operation } from '../requests.ts'
import type { Target } from '../section.ts'
import type { Measure, Series } from '../slices.ts'
import { kinds, peers, type SystemName } from '../systems.ts'
import type { Comparison } from './throughput-tables.ts'

type Bound = Target['bound']
type Find = (
  load: { workload: Operation; connections: number },
  name: SystemName,
) => Series | undefined

const measureNames: Record<Measure, string> = {
  perSecond: 'throughput',
  p50Ms: 'p50',
  p99Ms: 'p99',
  cpuUs: 'CPU',
  rssMb: 'memory',
}
const operations = ['create', 'get', 'list'] as const

/** The claims about Plant Store's speed, relative to the other systems of the same run. */
export function toTargets(comparisons: readonly Comparison[]): Target[] {
  const find: Find = ({ workload, connections }, name) =>
    comparisons
      .find((one) => one.workload === workload && one.connections === connections)
      ?.series.find(({ system }) => system === name)

  function compare(
    workload: Operation,
    [ours, other]: [SystemName, SystemName],
    measure: Measure,
    bound: Bound,
    connections = 64,
  ): Target[] {
    const one = find({ workload, connections }, ours)
    const two = find({ workload, connections }, other)
    if (one === undefined || two === undefined) return []
    const load = connections === 1 ? `${workload}, 1 connection` : workload
    const title = `${load}, ${measureNames[measure]}: ${kinds[ours].title} / ${kinds[other].title}`
    return [{ title, value: ratio(one, two, measure), bound, ...refuse([one, two], measure) }]
  }

  return [
    ...compare('create', ['ours-sqlite', 'echo'], 'cpuUs', { max: 1.45 }),
    ...compare('create', ['ours-sqlite', 'echo'], 'perSecond', { min: 0.65 }),
    ...compare('create', ['ours-sqlite', 'baseline-sqlite'], 'perSecond', { min: 3.5 }),
    ...compare('create', ['ours-sqlite', 'baseline-sqlite'], 'cpuUs', { max: 0.4 }),
    ...compare('create', ['ours-sqlite', 'baseline-sqlite'], 'p99Ms', { max: 0.5 }),
    ...compare('create', ['ours-postgres', 'baseline-postgres'], 'perSecond', { min: 2.8 }),
    ...compare('create', ['ours-postgres', 'baseline-postgres'], 'cpuUs', { max: 0.4 }),
    ...compare('create', ['ours-sqlite', 'baseline-sqlite'], 'p50Ms', { max: 1.2 }, 1),
    ...compare('create', ['ours-postgres', 'baseline-postgres'], 'p50Ms', { max: 1.2 }, 1),
    ...(['get', 'list'] as const).flatMap((workload) => [
      ...compare(workload, ['ours-sqlite', 'baseline-sqlite'], 'cpuUs', { max: 1 }),
      ...compare(workload, ['ours-postgres', 'baseline-postgres'], 'cpuUs', { max: 1 }),
    ]),
    ...operations.flatMap((workload) =>
      peers.flatMap((peer) => compare(workload, ['ours-sqlite', peer], 'perSecond', { min: 1 })),
    ),
    ...compareGenerator(find),
  ]
}

/** A generator that costs more than the echo would measure itself. */
function compareGenerator(find: Find): Target[] {
  const echo = find({ workload: 'create', connections: 64 }, 'echo')
  if (echo === undefined) return []
  const value = median(echo.generatorCpuUs) / median(echo.rounds.cpuUs)
  return [{ title: 'create, CPU: load generator / bare echo', value, bound: { max: 1 } }]
}

function refuse(series: readonly Series[], measure: Measure): { refused: string } | object {
  const isRefused = measure === 'perSecond' && series.some(isGeneratorBound)
  return isRefused ? { refused: 'generator-bound' } : {}
}
