import { type Data, type HttpContext, type LaneInfo, type MetricRecord, Plugin, type Tools } from '#heddle'

/** Source: the Prometheus text exposition format, version 0.0.4. */
const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'
/** Upper bounds of the duration histogram, seconds: from a read in memory to a statement close to its timeout. */
const BUCKETS_SEC = [0.00001, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5]

const LANE_METRICS: readonly (readonly [
  name: string,
  type: string,
  help: string,
  read: (lane: LaneInfo) => number | null,
])[] = [
  [
    'heddle_lane_responsive',
    'gauge',
    '0 while the event loop of a lane stands still.',
    (lane) => (lane.state === 'idle' ? null : +lane.responsive),
  ],
  ['heddle_lane_requests_in_flight', 'gauge', 'Requests at a lane.', (lane) => lane.requests_in_flight],
  ['heddle_lane_deliveries_in_flight', 'gauge', 'Event deliveries at a lane.', (lane) => lane.deliveries_in_flight],
  ['heddle_lane_sockets_open', 'gauge', 'WebSockets that a lane has.', (lane) => lane.sockets_open],
  [
    'heddle_lane_loop_delay_seconds',
    'gauge',
    'Longest delay of the event loop of a lane in the last second.',
    ({ loop_delay_ms: ms }) => (ms === null ? null : ms / 1000),
  ],
  ['heddle_lane_heap_bytes', 'gauge', 'Heap that a lane uses.', (lane) => lane.heap_bytes],
  ['heddle_lane_restarts_total', 'counter', 'Threads that a lane has lost.', (lane) => lane.restarts],
]

type Sample = [labels: Readonly<Record<string, string>>, value: number, suffix?: string | undefined]

/** The calls of one method of one tool since boot. */
class CallSeries {
  calls = 0
  errors = 0
  /** Of the errors, those by their caller's fault. */
  refused = 0
  totalSec = 0
  /** Calls per bucket, not cumulative. The last bucket counts calls slower than all bounds. */
  readonly buckets: number[] = new Array(BUCKETS_SEC.length + 1).fill(0)

  add(durationSec: number, success: boolean, isCallersFault: boolean) {
    this.calls++
    if (!success) this.errors++
    if (isCallersFault) this.refused++
    this.totalSec += durationSec
    let n = 0
    while (n < BUCKETS_SEC.length && durationSec > BUCKETS_SEC[n]!) n++
    this.buckets[n]!++
  }
}

/** Tool calls, lanes and events for a Prometheus server to scrape. */
export default class ExportMetrics extends Plugin {
  static override thread = 'primary' as const
  #http
  #bus
  #registry
  /** By tool, then by method, so that the hot path concatenates no text. */
  readonly #series = new Map<string, Map<string, CallSeries>>()

  constructor({ http, event_bus, registry }: Tools) {
    super()
    this.#http = http
    this.#bus = event_bus
    this.#registry = registry
  }

  override onBoot() {
    this.#registry.addMetricsSink((record) => this.#count(record))
    this.#http.addEndpoint('/system/metrics/prometheus', 'GET', this.scrape, {
      tags: ['system'],
      summary: 'Metrics in the Prometheus text format',
      description: 'Of requests, events, jobs, lanes, tools and the process.',
    })
  }

  /** Runs within every tool call of the process. */
  #count({ tool, method, duration_ms, success, fault }: MetricRecord) {
    let methods = this.#series.get(tool)
    if (methods === undefined) {
      methods = new Map()
      this.#series.set(tool, methods)
    }
    let series = methods.get(method)
    if (series === undefined) {
      series = new CallSeries()
      methods.set(method, series)
    }
    series.add(duration_ms / 1000, success, fault === 'caller')
  }

  async scrape(_data: Data, context: HttpContext) {
    const text =
      this.#toolCalls() + this.#health() + (await this.#lanes()) + (await this.#events()) + (await this.#counters())
    context.sendBinary(Buffer.from(text), CONTENT_TYPE)
  }

  #toolCalls(): string {
    const calls: Sample[] = []
    const errors: Sample[] = []
    const refused: Sample[] = []
    const durations: Sample[] = []
    for (const [tool, methods] of this.#series) {
      for (const [method, series] of methods) {
        const labels = { tool, method }
        calls.push([labels, series.calls])
        errors.push([labels, series.errors])
        refused.push([labels, series.refused])
        let cumulated = 0
        series.buckets.forEach((count, n) => {
          cumulated += count
          durations.push([{ ...labels, le: String(BUCKETS_SEC[n] ?? '+Inf') }, cumulated, '_bucket'])
        })
        durations.push([labels, series.totalSec, '_sum'], [labels, series.calls, '_count'])
      }
    }
    return (
      family('heddle_tool_calls_total', 'counter', 'Tool calls since boot.', calls) +
      family('heddle_tool_errors_total', 'counter', 'Tool calls that threw or rejected.', errors) +
      family(
        'heddle_tool_refusals_total',
        'counter',
        "Of the errors of tool calls, those by their caller's fault: a violated constraint, a refused input, a lost race.",
        refused,
      ) +
      family('heddle_tool_call_duration_seconds', 'histogram', 'How long tool calls took.', durations) +
      family(
        'heddle_transaction_repeats_total',
        'counter',
        'Transactions that the database rolled back for another one, and that ran again.',
        [[{}, this.#series.get('db')?.get('repeat')?.calls ?? 0]],
      )
    )
  }

  #health(): string {
    const tools = Object.entries(this.#registry.getSystemDump().tools)
    const samples = tools.map(([tool, { fault }]): Sample => [{ tool }, fault === 'tool' ? 0 : 1])
    return family('heddle_tool_healthy', 'gauge', '0 while a tool is FAIL or DEAD by its own fault.', samples)
  }

  async #lanes(): Promise<string> {
    const states = Object.entries(this.#registry.getSystemDump().lanes)
    let text = family(
      'heddle_lanes',
      'gauge',
      'Lanes per state.',
      states.map(([state, count]) => [{ state }, count]),
    )
    const lanes = await this.#registry.getLanes()
    for (const [name, type, help, read] of LANE_METRICS) {
      const samples = lanes.flatMap((lane): Sample[] => {
        const value = read(lane)
        return value === null ? [] : [[labelsOf(lane), value]]
      })
      text += family(name, type, help, samples)
    }
    return text
  }

  async #events(): Promise<string> {
    const topology = Object.entries(await this.#bus.getTopology())
    const fired = topology.map(([event, { fire_count }]): Sample => [{ event }, fire_count])
    return family('heddle_events_total', 'counter', 'Events published since boot.', fired)
  }

  async #counters(): Promise<string> {
    const counters = await this.#registry.getCounters()
    const text = counters.map(({ name, kind, help, samples }) =>
      family(
        name,
        kind,
        help,
        samples.map(({ labels, value, suffix }): Sample => [labels, value, suffix]),
      ),
    )
    return text.join('')
  }
}

/** A relief lane has the number of the lane that it stands in for. */
const labelsOf = ({ index, role }: LaneInfo): Record<string, string> =>
  role === 'regular' ? { lane: String(index) } : { lane: String(index), role }

/** One metric with its samples. `help` holds neither backslashes nor line ends. */
function family(name: string, type: string, help: string, samples: readonly Sample[]): string {
  let text = `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`
  for (const [labels, value, suffix = ''] of samples) {
    const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`)
    text += `${name}${suffix}{${pairs.join(',')}} ${value}\n`
  }
  return text
}

function escaped(labelValue: string): string {
  return labelValue.replace(/[\\"\n]/g, (char) => (char === '\n' ? '\\n' : `\\${char}`))
}
