import { fileURLToPath } from 'node:url'
import type { TracingInit } from '../contracts/tracing.ts'
import { messageOf, type WireError } from '../core/errors/wire.ts'
import { loadModule } from '../core/files/load-module.ts'
import { until } from '../core/schedule/until.ts'
import { mountEndpoints } from '../runtime/endpoint/mount.ts'
import { RequestServer } from '../runtime/endpoint/request-server.ts'
import { WebSocketServer } from '../runtime/endpoint/web-socket-server.ts'
import { EventServer } from '../runtime/events/event-server.ts'
import { runJob } from '../runtime/jobs/run-job.ts'
import { existingMemory, ThreadKernel } from '../runtime/kernel/thread.ts'
import type { ThreadStreams } from '../runtime/streams/thread-streams.ts'
import type { ThreadTracing } from '../tracing/spans/thread-tracing.ts'
import { installExitReport } from '../transport/exit-report.ts'
import { type EventFrame, eventMaxBytes, readEvent, writeEvent } from '../transport/frames/event-frame.ts'
import { KIND } from '../transport/frames/frame-kinds.ts'
import { readRequest } from '../transport/frames/request-frame.ts'
import { AnswerCell } from '../transport/memory/answer-cell.ts'
import { FlightRecorder, STEP_EVENT, STEP_STREAM_EVENT } from '../transport/memory/flight-recorder.ts'
import { HeartbeatWriter, memoryLimits } from '../transport/memory/heartbeat.ts'
import type { LaneInit, SharedMount, SubscriptionManifest, ToLane, ToPrimary } from '../transport/messages.ts'
import { Inbox } from '../transport/rings/inbox.ts'
import { Outbox } from '../transport/rings/outbox.ts'
import { LaneBus } from './event-bus.ts'
import { LaneFlight } from './flight-log.ts'
import { PrimaryCalls } from './primary-calls.ts'
import { RecordedDeliveries } from './recorded-deliveries.ts'
import { RingAcknowledgements } from './ring-acknowledgements.ts'
import { RingPublisher } from './ring-publisher.ts'
import { RingReplies } from './ring-replies.ts'
import { readSocketFrame } from './socket-frames.ts'
import { LaneToolHost } from './tool-host.ts'

const TRACING_FILE = fileURLToPath(new URL('../tracing/spans/thread-tracing.ts', import.meta.url))
const STREAMS_FILE = fileURLToPath(new URL('../runtime/streams/thread-streams.ts', import.meta.url))
/** A drain waits so long for what the plugins still do for sockets that are closed, milliseconds. */
const SOCKETS_END_MS = 2000

/** The worker's end of a lane: boots the plugins, then runs requests and events until it is drained. */
export class LaneServer {
  readonly #init: LaneInit
  readonly #outbox: Outbox
  readonly #inbox: Inbox
  readonly #calls: PrimaryCalls
  readonly #ring: RingPublisher
  readonly #bus: LaneBus
  /** Null while the hub carries all events. */
  #streams: ThreadStreams | null = null
  #tracing: ThreadTracing | null = null
  readonly #host: LaneToolHost
  readonly #kernel: ThreadKernel
  readonly #requests: RequestServer
  readonly #events = new EventServer()
  readonly #recorder: FlightRecorder
  readonly #hubDeliveries: RecordedDeliveries
  readonly #heartbeat: HeartbeatWriter
  readonly #flight: LaneFlight
  readonly #subscriptions: SubscriptionManifest[] = []

  constructor(init: LaneInit) {
    this.#init = init
    const { port, bulk, settings, shared } = init
    this.#outbox = new Outbox(init.outbound, port, bulk)
    this.#inbox = new Inbox(init.inbound, bulk, this.#onFrame, NOTHING)
    this.#heartbeat = new HeartbeatWriter(init.heartbeat, memoryLimits(settings.laneMemoryMb))
    const recorder = new FlightRecorder(init.flight)
    this.#recorder = recorder
    installExitReport(recorder)
    this.#flight = new LaneFlight(recorder, settings.laneMaxInflight)
    this.#calls = new PrimaryCalls(this.#outbox)
    this.#host = new LaneToolHost(this.#outbox, this.#calls, (message) => this.#post(message))
    const logFault = (path: string, plugin: string, requestId: string, thrown: unknown): void =>
      this.#host.writeLog('ERROR', `${path} failed: ${messageOf(thrown)}`, plugin, {
        request_id: requestId,
        stack: thrown instanceof Error ? thrown.stack : undefined,
      })
    const replies = new RingReplies(this.#outbox, new AnswerCell(init.address), this.#flight)
    const sockets = new WebSocketServer({
      sink: replies,
      onFault: logFault,
      beginStep: (routeNumber, requestId) => this.#flight.beginMessage(routeNumber, requestId),
      endStep: (step, failed) => this.#flight.endStep(step, failed),
    })
    this.#requests = new RequestServer(
      replies,
      ({ template, owner }, requestId, thrown) => logFault(template.text, owner.name, requestId, thrown),
      sockets,
    )
    this.#hubDeliveries = new RecordedDeliveries(recorder, STEP_EVENT, new RingAcknowledgements(this.#outbox))
    this.#ring = new RingPublisher(this.#outbox)
    this.#bus = new LaneBus(this.#ring, {
      calls: this.#calls,
      events: this.#events,
      onSubscribe: (subscriberIndex, subscription) => {
        this.#subscriptions[subscriberIndex] = subscription
        const { plugin, event, identity, options } = subscription
        this.#streams?.add(subscriberIndex, plugin, event, identity, options)
        if (this.#host.isBooted) this.#post({ type: 'subscribe', subscriberIndex, subscription })
      },
      onUnsubscribe: (subscriberIndex) => {
        delete this.#subscriptions[subscriberIndex]
        this.#streams?.remove(subscriberIndex)
        if (this.#host.isBooted) this.#post({ type: 'unsubscribe', subscriberIndex })
      },
      onListen: (feed, on) => this.#post({ type: 'listen', feed, on }),
      onListenerFault: (kind, thrown) => this.#kernel.sinkFault(kind, thrown),
    })
    this.#kernel = new ThreadKernel({
      thread: { kind: 'lane', index: init.index },
      settings,
      metrics: shared.metrics,
      names: shared.names,
      statuses: shared.statuses,
      flight: recorder,
      sharedMemory: (key) => existingMemory(shared.tools, key),
      callPrimary: (tool, method, args) => this.#calls.call(tool, method, args),
      onToolStatus: (tool, status, message) => this.#post({ type: 'tool-status', tool, status, message }),
      writeLog: (level, message, identity, fields) => this.#host.writeLog(level, message, identity, fields),
    })
    this.#host.connect(this.#kernel, this.#bus)
  }

  /** Boots and serves until the primary ends the thread; a boot that fails is reported and resolves. */
  async run(): Promise<void> {
    const { port, settings } = this.#init
    port.on('message', (message: ToLane | number) => {
      if (typeof message === 'number') this.#inbox.drain()
      else this.#onMessage(message)
    })
    this.#heartbeat.start()
    const startedMs = performance.now()
    try {
      const { toolbox, plugins } = this.#kernel
      if (this.#init.tracing !== null) await this.#openTracing(this.#init.tracing)
      if (settings.eventBusDriver === 'keyvalue_streams') await this.#openStreams()
      await toolbox.install(settings.toolsDir, this.#kernel.runtimeFactory(this.#host))
      await toolbox.boot((tool, error) =>
        this.#host.writeLog('ERROR', `Tool ${tool} did not boot: ${messageOf(error)}`, tool),
      )
      await plugins.boot(settings.domainsDir, 'worker', {
        barred: this.#init.barred,
        onNext: (file) => this.#post({ type: 'booting', file }),
      })
    } catch (error) {
      this.#post({
        type: 'boot-failed',
        message: messageOf(error),
        stack: error instanceof Error ? error.stack : undefined,
      })
      return
    }
    this.#dropDead()
    this.#host.isBooted = true
    this.#post({
      type: 'manifest',
      bootMs: performance.now() - startedMs,
      manifest: {
        plugins: this.#kernel.plugins.health,
        faults: this.#kernel.plugins.faults,
        files: this.#kernel.plugins.files,
        routes: this.#host.routes.map(({ manifest }) => manifest),
        // Passes over those that are gone by now.
        subscriptions: this.#subscriptions.flatMap((subscription, subscriberIndex) => [
          { ...subscription, subscriberIndex },
        ]),
        jobs: this.#host.jobList.map(({ manifest }) => manifest),
      },
    })
    await FOREVER
  }

  /** What a plugin registered before it failed is not served. */
  #dropDead(): void {
    const { health } = this.#kernel.plugins
    const isAlive = (plugin: string): boolean => health[plugin]?.status === 'OK'
    const { routes, jobList } = this.#host
    routes.splice(0, routes.length, ...routes.filter(({ manifest }) => isAlive(manifest.plugin)))
    jobList.splice(0, jobList.length, ...jobList.filter(({ manifest }) => isAlive(manifest.plugin)))
    this.#subscriptions.forEach((subscription, subscriberIndex) => {
      if (isAlive(subscription.plugin)) return
      this.#events.remove(subscriberIndex)
      this.#streams?.remove(subscriberIndex)
      delete this.#subscriptions[subscriberIndex]
    })
  }

  /** Loaded on demand, like the streams: without it a lane has not one module of the SDK. */
  async #openTracing(init: TracingInit): Promise<void> {
    const module = (await loadModule(TRACING_FILE)) as typeof import('../tracing/spans/thread-tracing.ts')
    const tracing = new module.ThreadTracing(this.#init.settings, init)
    this.#tracing = tracing
    this.#kernel.meter.setTracing(tracing.tools)
    this.#requests.tracing = tracing
    this.#events.tracing = tracing
    this.#bus.tracing = tracing
  }

  /** Loaded on demand: a lane of the in-process bus has no use for a client of the store. */
  async #openStreams(): Promise<void> {
    const module = (await loadModule(STREAMS_FILE)) as typeof import('../runtime/streams/thread-streams.ts')
    const streams: ThreadStreams = new module.ThreadStreams({
      settings: this.#init.settings,
      role: `lane ${this.#init.index}`,
      serve: (id, frame) => {
        deliveries.begin(id, frame)
        this.#events.handle(id, frame, deliveries)
      },
      received: (frame) => this.#record(frame, 1),
      tracing: this.#tracing?.deliveries ?? null,
      published: (frame) => this.#record(frame, 0),
      report: (report) => this.#post({ type: 'stream', report }),
      log: (level, message, fields) => this.#host.writeLog(level, message, 'event_bus', fields),
    })
    const deliveries = new RecordedDeliveries(this.#recorder, STEP_STREAM_EVENT, streams.answers)
    this.#streams = streams
    this.#bus.publisher = streams
  }

  /** For the trace in the primary: the event without its payload. */
  #record(frame: EventFrame, isReceived: 0 | 1): void {
    const { payload } = frame
    frame.payload = ''
    const at = this.#outbox.begin(eventMaxBytes(frame, 'bytes'), true)
    if (at >= 0) {
      this.#outbox.end(
        writeEvent(this.#outbox, this.#outbox.doubles, at, frame, 'bytes'),
        KIND.RECORD,
        isReceived,
        false,
      )
    }
    frame.payload = payload
  }

  #post(message: ToPrimary): void {
    this.#init.port.postMessage(message)
  }

  // ── frames from the primary ───────────────────────────────────────────────

  readonly #onFrame = (kind: number, id: number, at: number, length: number): void => {
    switch (kind) {
      case KIND.REQUEST: {
        const frame = readRequest(this.#inbox, at)
        this.#flight.beginRequest(id, frame)
        return this.#requests.handle(id, frame)
      }
      case KIND.DELIVERY: {
        const frame = readEvent(this.#inbox, this.#inbox.doubles, at, length, 'text')
        this.#hubDeliveries.begin(id, frame)
        return this.#events.handle(id, frame, this.#hubDeliveries)
      }
      case KIND.PUBLISH_TAKEN:
        return this.#ring.taken(id)
      case KIND.CANCEL:
        return this.#requests.cancel(id)
      case KIND.FILE_TAKEN:
        return this.#requests.fileTaken(id, Number(this.#inbox.bytes.latin1Slice(at, at + length)))
      case KIND.CALL_RESULT:
        return this.#calls.resolve(id, this.#inbox.bytes.utf8Slice(at, at + length))
      case KIND.CALL_ERROR:
        return this.#calls.reject(id, this.#inbox.bytes.utf8Slice(at, at + length))
      case KIND.PUBLISH_REFUSED:
        return this.#ring.refused(id, JSON.parse(this.#inbox.bytes.utf8Slice(at, at + length)) as WireError)
    }
    readSocketFrame(this.#requests.sockets, kind, id, this.#inbox, at, length)
  }

  // ── messages from the primary ─────────────────────────────────────────────

  #onMessage(message: ToLane): void {
    switch (message.type) {
      case 'assign':
        return this.#assign(message.routes, message.mounts)
      case 'ready':
        void this.#kernel.plugins.ready(message.plugins, (plugin) => this.#post({ type: 'ready-done', plugin }))
        return
      case 'feed':
        this.#bus.fed(message.traces ?? [], message.failures ?? [])
        for (const { level, message: text, timestampMs, identity } of message.logs ?? []) {
          this.#kernel.tellLogSinks(level, text, timestampMs, identity)
        }
        return
      case 'snapshot':
        this.#host.dump = message.dump
        this.#bus.subscribersOf = message.subscribers
        return
      case 'job':
        void this.#runJob(message.run, message.job)
        return
      case 'stream':
        return this.#streams?.obey(message.command)
      case 'drain':
        void this.#drain()
    }
  }

  #assign(numbers: readonly number[], mounts: readonly SharedMount[]): void {
    this.#host.routes.forEach(({ endpoint, stream, socket }, n) => {
      const number = numbers[n]!
      if (number < 0) return
      if (endpoint !== null) {
        this.#requests.addEndpoint(number, endpoint.owner, endpoint.path, endpoint.handler, endpoint.options)
      } else if (stream !== null) {
        this.#requests.addStream(number, stream.owner, stream.path, stream.handler, stream.options)
      } else if (socket !== null) this.#requests.addWebSocket(number, socket)
    })
    for (const { plugin, prefix, directory, numbers } of mounts) {
      const owner = { name: plugin, instance: undefined }
      mountEndpoints({ owner, prefix, directory }).forEach(({ path, handler, options }, n) => {
        this.#requests.addEndpoint(numbers[n]!, owner, path, handler, options)
      })
    }
  }

  async #runJob(run: number, job: number): Promise<void> {
    let error: string | null = null
    const step = this.#flight.beginJob(job)
    try {
      await runJob(this.#host.jobList[job]!.definition, this.#tracing)
    } catch (thrown) {
      error = messageOf(thrown)
    }
    this.#flight.endStep(step, error !== null)
    this.#post({ type: 'job-done', run, error })
  }

  /** The primary drains a lane when nothing is in flight there but streams, and has closed its sockets: that is on its way. */
  async #drain(): Promise<void> {
    this.#requests.closeStreams()
    const deadlineMs = Date.now() + SOCKETS_END_MS
    await until(() => this.#requests.sockets.size === 0, deadlineMs)
    await this.#kernel.stop()
    await this.#streams?.close()
    this.#heartbeat.stop()
    // One turn more, so that the last frames are rung for.
    await new Promise((resolve) => setImmediate(resolve))
    this.#post({ type: 'drained' })
  }
}

const NOTHING = (): void => {}
const FOREVER = new Promise<void>(() => {})
