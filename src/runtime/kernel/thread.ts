// The kernel of one thread: its tools and its plugins.
import type { LogLevel, LogSink } from '../../contracts/logger.ts'
import type { MetricRecord, MetricsSink, ToolStatus } from '../../contracts/registry.ts'
import type { ThreadRef, ToolHost, ToolRuntime, Tools } from '../../contracts/tool.ts'
import { causality } from '../../core/causality/context.ts'
import { isoTimestamp } from '../../core/causality/ids.ts'
import { readVariable } from '../../core/config/plugin-variables.ts'
import type { Settings } from '../../core/config/schema.ts'
import { type Fault, HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { CLAIM_MEMORY_BYTES } from '../../transport/memory/claim-memory.ts'
import type { FlightRecorder } from '../../transport/memory/flight-recorder.ts'
import { createMetricsRing, MetricsFeed, MetricsRing, type RawMetric } from '../../transport/memory/metrics-ring.ts'
import { createNameTable, NameTable } from '../../transport/memory/name-table.ts'
import { STORE_MEMORY_BYTES } from '../../transport/memory/store-memory.ts'
import { ToolUses, USES_BYTES, USES_MEMORY } from '../../transport/memory/tool-uses.ts'
import { createStatusTable, StatusTable } from '../../transport/memory/words.ts'
import type { LogRecord, SharedMemories } from '../../transport/messages.ts'
import { faultRecord } from '../advice/fault-record.ts'
import { detailsOf } from '../log-records.ts'
import { added, sinkFault, tellAll } from './listeners.ts'
import { Plugins } from './plugins.ts'
import { Meter, metricRecord } from './proxy.ts'
import { Toolbox } from './toolbox.ts'

/** Records that `registry.getMetrics()` shows. */
export const METRICS_SHOWN = 1000
/** How much later a sink gets the calls of other threads, milliseconds. */
const METRICS_FEED_MS = 50

/** What all threads of a process share. Made in the primary. */
export function createSharedMemories(): SharedMemories {
  return {
    metrics: createMetricsRing(),
    names: createNameTable(),
    statuses: createStatusTable(),
    log: new SharedArrayBuffer(STORE_MEMORY_BYTES),
    claims: new SharedArrayBuffer(CLAIM_MEMORY_BYTES),
    tools: {},
  }
}

type CallPrimary = (tool: string, method: string, args: readonly unknown[]) => Promise<unknown>

export interface ThreadOptions {
  thread: ThreadRef
  settings: Settings
  shared: SharedMemories
  /** Null in the primary: when it dies, nothing is left that could read it. */
  flight: FlightRecorder | null
  /** Null in the primary, whose own tools answer. */
  callPrimary: CallPrimary | null
  onToolStatus(tool: string, status: ToolStatus, message: string | null, fault: Fault | null): void
  writeLog(level: LogLevel, message: string, identity: string, fields?: Record<string, unknown>): void
}

/** The kernel of one thread: its meter, its tools, its plugins, and its own sinks. */
export class ThreadKernel {
  readonly settings: Settings
  readonly shared: SharedMemories
  readonly toolbox: Toolbox
  readonly plugins: Plugins
  readonly meter: Meter
  readonly writeLog: ThreadOptions['writeLog']
  /** All plugins have booted: none may register anything any more. */
  isBooted = false
  readonly #options: ThreadOptions
  readonly #metrics: MetricsRing
  readonly #names: NameTable
  readonly #logSinks: ((record: LogRecord) => void)[] = []
  readonly #metricsSinks: MetricsSink[] = []
  readonly #threadNumber: number
  #metricsTimer: NodeJS.Timeout | undefined

  constructor(options: ThreadOptions) {
    const { settings, shared, writeLog } = options
    this.#options = options
    this.settings = settings
    this.shared = shared
    this.writeLog = writeLog
    this.#metrics = new MetricsRing(shared.metrics)
    this.#names = new NameTable(shared.names)
    this.#threadNumber = options.thread.kind === 'primary' ? 0 : options.thread.index + 1
    this.meter = new Meter({
      threadNumber: this.#threadNumber,
      metrics: this.#metrics,
      names: this.#names,
      statuses: new StatusTable(shared.statuses),
      flight: options.flight,
      onStatus: options.onToolStatus,
      onSinkFault: (thrown) => this.sinkFault('metrics sink', thrown),
    })
    const uses = new ToolUses(this.#sharedMemory(`registry/${USES_MEMORY}`, USES_BYTES))
    this.toolbox = new Toolbox(this.meter, (plugin, tool) => uses.add(plugin, tool))
    const kind = options.thread.kind === 'primary' ? 'primary' : 'worker'
    this.plugins = new Plugins(kind, settings, this.toolbox, writeLog)
  }

  /** Makes the runtime of each tool of this thread. */
  runtimeFactory(host: ToolHost): (toolName: () => string) => ToolRuntime {
    const { thread } = this.#options
    const callPrimary: CallPrimary =
      this.#options.callPrimary ?? (async (tool, method, args) => this.toolbox.serve(tool, method, args))
    return (name) => ({
      thread,
      settings: this.settings,
      env: readVariable,
      log: (level, message, fields) => this.writeLog(level, message, name(), fields),
      context: () => causality.getStore(),
      callPrimary: (method, args) => callPrimary(name(), method, args),
      sharedMemory: (key, byteLength) => this.#sharedMemory(`${name()}/${key}`, byteLength),
      instrument: (target) => this.toolbox.instrument(name(), target),
      peer: <Name extends keyof Tools>(other: Name) =>
        this.toolbox.peer({ name: name(), instance: undefined }, other) as Tools[Name],
      host,
    })
  }

  /** @throws when the primary's instance of the tool has not made this memory */
  #sharedMemory(key: string, byteLength: number): SharedArrayBuffer {
    const { tools } = this.shared
    if (this.#options.thread.kind === 'primary') tools[key] ??= new SharedArrayBuffer(byteLength)
    const memory = tools[key]
    if (memory === undefined) throw new HeddleError('INTERNAL', `The primary's instance made no shared memory ${key}`)
    return memory
  }

  /** Logs what a handler has thrown, with its line and its fix. */
  readonly logFault = (path: string, plugin: string, requestId: string, thrown: unknown): void => {
    const { message, fields } = faultRecord(path, plugin, requestId, thrown, this.plugins.facts)
    this.writeLog('ERROR', message, plugin, fields)
  }

  // ── sinks of this thread ──────────────────────────────────────────────────

  addLogSink(sink: LogSink): () => void {
    return added(this.#logSinks, (record: LogRecord) =>
      sink(record.level, record.message, isoTimestamp(record.timestampMs), record.identity, detailsOf(record)),
    )
  }

  get hasLogSinks(): boolean {
    return this.#logSinks.length > 0
  }

  tellLogSinks(record: LogRecord): void {
    // The report of a sink that throws is a log record, and comes back to it: it is marked by then.
    if (this.hasLogSinks) tellAll(this.#logSinks, record, (thrown) => this.sinkFault('log sink', thrown))
  }

  /** A sink gets the calls of its own thread at once, and those of other threads from the ring. */
  addMetricsSink(sink: MetricsSink): () => void {
    const removeOwn = this.meter.addSink(sink)
    const removeOthers = added(this.#metricsSinks, sink)
    if (this.#metricsTimer === undefined) {
      const feed = new MetricsFeed(this.#metrics)
      this.#metricsTimer = setInterval(() => this.#feedMetrics(feed), METRICS_FEED_MS).unref()
    }
    return () => {
      removeOwn()
      removeOthers()
      if (this.#metricsSinks.length > 0) return
      clearInterval(this.#metricsTimer)
      this.#metricsTimer = undefined
    }
  }

  #feedMetrics(feed: MetricsFeed): void {
    feed.look((raw) => {
      if (raw.threadNumber === this.#threadNumber) return
      tellAll(this.#metricsSinks, this.#recordOf(raw), (thrown) => this.sinkFault('metrics sink', thrown))
    })
  }

  /** The last calls of the whole process, oldest first. */
  recentMetrics(): MetricRecord[] {
    const to = this.#metrics.cursor
    const records: MetricRecord[] = []
    this.#metrics.read(to - METRICS_SHOWN, to, (raw) => records.push(this.#recordOf(raw)))
    return records
  }

  #recordOf(raw: RawMetric): MetricRecord {
    const call = this.#names.nameOf(raw.callNumber)
    const dot = call.indexOf('.')
    return metricRecord(call.slice(0, dot), call.slice(dot + 1), raw)
  }

  sinkFault(kind: string, thrown: unknown): void {
    this.writeLog('ERROR', sinkFault(kind, thrown), 'kernel')
  }

  async stop(): Promise<void> {
    await this.plugins.stop()
    clearInterval(this.#metricsTimer)
    await this.toolbox.stop((tool, error) =>
      this.writeLog('ERROR', `Tool ${tool} failed to stop: ${messageOf(error)}`, tool),
    )
  }
}
