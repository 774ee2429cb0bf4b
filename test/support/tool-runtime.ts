import type { Owner } from '../../src/contracts/common.ts'
import type { BusTransport, Subscription, TopologyEntry } from '../../src/contracts/event-bus.ts'
import type { FetchMount, Route, StaticMount } from '../../src/contracts/http.ts'
import type { LogLevel, LogSink } from '../../src/contracts/logger.ts'
import type { MetricsSink } from '../../src/contracts/registry.ts'
import type { JobDefinition } from '../../src/contracts/scheduler.ts'
import type { Tool, ToolHost, ToolRuntime } from '../../src/contracts/tool.ts'
import { loadSettings } from '../../src/core/config/load.ts'
import type { Settings } from '../../src/core/config/schema.ts'
import { fromWire, toWire } from '../../src/core/errors/catalogue.ts'

export const SECRET = 'a secret of more than thirty-two characters'

export interface LogLine {
  level: LogLevel
  message: string
  identity: string
  fields: Record<string, unknown> | undefined
}

/** What a tool handed to its host, in the order of the calls. */
export interface Recorded {
  routes: Route[]
  mounts: StaticMount[]
  fetchMounts: FetchMount[]
  jobs: JobDefinition[]
  logs: LogLine[]
  logSinks: Set<LogSink>
  metricsSinks: Set<MetricsSink>
  statuses: unknown[][]
  published: unknown[][]
  requested: unknown[][]
  subscriptions: Subscription[]
  listeners: Set<unknown>
}

export interface FixtureOptions {
  settings?: Partial<Settings>
  env?: Record<string, string>
  topology?: Record<string, TopologyEntry>
  /** The tool's instance in the primary, which makes this the runtime of a lane. */
  primary?: () => Tool
}

/** A runtime for one tool instance whose host keeps what it is given. */
export function fixtureRuntime(options: FixtureOptions = {}): { runtime: ToolRuntime; recorded: Recorded } {
  const recorded: Recorded = {
    routes: [],
    mounts: [],
    fetchMounts: [],
    jobs: [],
    logs: [],
    logSinks: new Set(),
    metricsSinks: new Set(),
    statuses: [],
    published: [],
    requested: [],
    subscriptions: [],
    listeners: new Set(),
  }
  const runtime: ToolRuntime = {
    thread: options.primary ? { kind: 'lane', index: 0 } : { kind: 'primary' },
    settings: { ...loadSettings({ AUTH_SECRET_KEY: SECRET }).settings, ...options.settings },
    env: (name) => options.env?.[name],
    log: (level, message, fields) => recorded.logs.push({ level, message, identity: 'tool', fields }),
    context: () => undefined,
    callPrimary: async () => {
      throw new Error('connect the runtime to its tool first')
    },
    sharedMemory: (_name, byteLength) => new SharedArrayBuffer(byteLength),
    instrument: (target) => target,
    peer: () => undefined,
    host: recordingHost(recorded, options.topology ?? {}),
  }
  return { runtime, recorded }
}

/** Builds a tool on a runtime of its own; with `primary`, as a lane's instance whose calls cross to that one as JSON. */
export function buildTool<T extends Tool>(
  ToolClass: new (runtime: ToolRuntime) => T,
  options: FixtureOptions = {},
): { tool: T; recorded: Recorded; runtime: ToolRuntime } {
  const { runtime, recorded } = fixtureRuntime(options)
  const tool = new ToolClass(runtime)
  const served = options.primary ?? (() => tool)
  runtime.callPrimary = async (method, args) => {
    if (!options.primary) return tool.serve?.(method, args)
    try {
      return asJson(await served().serve?.(method, asJson(args)))
    } catch (error) {
      throw fromWire(asJson(toWire(error)))
    }
  }
  return { tool, recorded, runtime }
}

export function owner(name = 'users.CreateUser'): Owner {
  return { name, instance: undefined }
}

function asJson<T>(value: T): T {
  return value === undefined ? value : JSON.parse(JSON.stringify(value))
}

function adder<T>(set: Set<T>): (item: T) => () => void {
  return (item) => {
    set.add(item)
    return () => void set.delete(item)
  }
}

function recordingHost(recorded: Recorded, topology: Record<string, TopologyEntry>): ToolHost {
  const bus: BusTransport = {
    checkPublication: null,
    checkCancel: null,
    beginTransaction: () => ({
      extend: (tx) => tx,
      own: null,
      hasLastStatements: false,
      lastStatements: () => [],
      committed: () => {},
      rolledBack: () => {},
      unknown: () => {},
    }),
    follow: async function* () {},
    publish: async (...args) => {
      recorded.published.push(args)
      return 'evt_1'
    },
    request: async (...args) => {
      recorded.requested.push(args)
      return { reply: true }
    },
    subscribe: (subscription) => {
      recorded.subscriptions.push(subscription)
      return () => {
        recorded.subscriptions = recorded.subscriptions.filter((known) => known !== subscription)
      }
    },
    addListener: adder(recorded.listeners),
    addFailureListener: adder(recorded.listeners),
    editDeadLetter: () => false,
    services: {
      cancel: () => ({ waiting: 0, running: 0 }),
      followed: () => ({ version: '1', subscribers: [] }),
      queues: async () => [],
      deliveries: async () => ({ deliveries: [], next: null }),
      setPaused: async () => 0,
      runNow: async () => 0,
      history: () => [],
      topology: () => topology,
      deadLetters: () => [],
      deadLetterPayload: () => null,
      replayDeadLetter: () => false,
      deleteDeadLetter: () => false,
    },
  }
  return {
    bus,
    addRoute: (route) => recorded.routes.push(route),
    addHook: () => {},
    mount: (mount) => recorded.fetchMounts.push(mount),
    mountStatic: (mount) => recorded.mounts.push(mount),
    writeLog: (level, message, identity, fields) => recorded.logs.push({ level, message, identity, fields }),
    addLogSink: adder(recorded.logSinks),
    addMetricsSink: adder(recorded.metricsSinks),
    addRequestSink: adder(new Set()),
    metrics: () => [],
    systemDump: () => ({ tools: {}, plugins: {}, lanes: {} }),
    updateToolStatus: (...args) => recorded.statuses.push(args),
    addJob: (job) => recorded.jobs.push(job),
    services: {
      jobs: () => [],
      runJob: async () => ({ id: 'job_1', replica: 'one' }),
      lanes: () => [],
      routeList: () => [],
      requests: async () => [],
      request: async () => null,
      workReport: async ({ sinceMs }) => ({ from_ms: sinceMs, handlers: [] }),
      readiness: () => ({ ready: true, reasons: [], lanes: {}, starved: {} }),
      counters: () => [],
    },
  }
}
