// Boots the plugins in this thread, obeys the primary, drains.

import { fileURLToPath } from 'node:url'
import { receiveMessageOnPort } from 'node:worker_threads'
import type { JobTime } from '../contracts/scheduler.ts'
import type { Origin, RecordingInit } from '../contracts/tracing.ts'
import { ancestorsBelow } from '../core/causality/ancestors.ts'
import { causality } from '../core/causality/context.ts'
import { adoptVariables } from '../core/config/plugin-variables.ts'
import { messageOf, stackOf } from '../core/errors/description.ts'
import { loadModule } from '../core/modules/domains.ts'
import { watchGuardian } from '../core/modules/guardian-watch.ts'
import { ringDue, steadyMs } from '../core/schedule/clock.ts'
import { ThreadsTime, until } from '../core/schedule/waiting.ts'
import { ThreadHistory } from '../history/recorder.ts'
import { watchEmptyAnswers } from '../runtime/advice/fault-record.ts'
import { keepTrimmed } from '../runtime/effects/transactions.ts'
import { mountEndpoints } from '../runtime/endpoint/files/static-files.ts'
import { RequestServer } from '../runtime/endpoint/request-server.ts'
import { RequestSteps } from '../runtime/endpoint/request-thread.ts'
import { staysInProcess } from '../runtime/event-store/database.ts'
import { staysInStore } from '../runtime/event-store/event-columns.ts'
import { StorePublisher, type ThreadStore } from '../runtime/event-store/thread-store.ts'
import { writeStoreChanges } from '../runtime/event-store/write-changes.ts'
import { threadStoreOf } from '../runtime/host/bus.ts'
import { servicesOver } from '../runtime/host/services.ts'
import { activeTools } from '../runtime/kernel/discover.ts'
import { watchUnawaited } from '../runtime/kernel/failed-calls.ts'
import { BootAftermath } from '../runtime/kernel/plugins.ts'
import { notePoolOrigins, poolUses } from '../runtime/kernel/pool-requests.ts'
import { ThreadKernel } from '../runtime/kernel/thread.ts'
import { ThreadLog } from '../runtime/log-records.ts'
import type { ThreadPublisher } from '../runtime/redis-streams/publisher.ts'
import type { ThreadTracing } from '../tracing/thread-tracing.ts'
import { installExitReport } from '../transport/exit-report.ts'
import type { EventFrame } from '../transport/frames/event-frame.ts'
import { KIND } from '../transport/frames/frames.ts'
import { FlightFile, FlightRecorder } from '../transport/memory/flight-recorder.ts'
import { HeartbeatWriter, memoryLimits } from '../transport/memory/heartbeat.ts'
import type { LaneInit, SharedMount, ToLane, ToPrimary } from '../transport/messages.ts'
import type { Inbox } from '../transport/rings/inbox.ts'
import { Outbox } from '../transport/rings/outbox.ts'
import type { StoreAnswer, StoreChanges } from '../transport/store-changes.ts'
import { BootTurns } from './boot-turns.ts'
import { Builtins, type Change } from './builtins.ts'
import { ChildProcesses, ENDING_MAX_MS } from './child-processes.ts'
import { LaneBus } from './event-bus.ts'
import {
  bootThatHoldsFiles,
  descriptorsLeft,
  holdersOfFiles,
  letGo,
  SharedBuffers,
  watchOpenFiles,
  watchThreads,
} from './leaving.ts'
import { primaryInbox } from './primary-frames.ts'
import { PrimaryCalls, RingAcknowledgements, RingPublisher, RingReplies } from './ring-ports.ts'
import { LaneHost } from './tool-host.ts'
import { noteHiddenVariables, watchUnseenVariables } from './unseen-variables.ts'

const TRACING_FILE = fileURLToPath(new URL('../tracing/thread-tracing.ts', import.meta.url))
const STREAMS_FILE = fileURLToPath(new URL('../runtime/redis-streams/publisher.ts', import.meta.url))
/** A drain waits this long for the handlers of sockets that are closed, milliseconds. */
const SOCKETS_END_MS = 2000
/**
 * Handlers that are under way when the lane's end begins have this long to settle, milliseconds, where their routes do not set less. Where the lane dies,
 * clients wait for them: then it is the threads' own time, for a handler may wait for Node's pool, and the pool for a core.
 */
const SETTLE_MS = 5000

/** The worker's end of a lane: boots the plugins, then runs requests and events until it is drained. */
export class LaneServer {
  readonly #init: LaneInit
  readonly #outbox: Outbox
  readonly #inbox: Inbox
  readonly #calls: PrimaryCalls
  readonly #bus: LaneBus
  readonly #publisher: RingPublisher
  readonly #log: ThreadStore
  readonly #stored: StorePublisher
  #stopTrimming: () => void = () => {}
  /** Null unless streams carry the events. */
  #streams: ThreadPublisher | null = null
  #tracing: ThreadTracing | null = null
  /** Null where no history is kept. */
  #history: ThreadHistory | null = null
  readonly #host: LaneHost
  readonly #kernel: ThreadKernel
  readonly #requests: RequestServer
  /** The recorder's copy outside of the process; null without a guardian. */
  readonly #flightFile: FlightFile | null
  readonly #sharedBuffers = new SharedBuffers()
  readonly #processes: ChildProcesses
  readonly #builtins = new Builtins()
  readonly #heartbeat: HeartbeatWriter
  readonly #sayWhy: ReturnType<typeof installExitReport>
  #hasLetGo = false
  /** Time for handlers to settle, after which it lets go; null while it does not leave. */
  #settling: ThreadsTime | null = null
  /** Deliveries that a leaving lane gives back in this turn of the loop. */
  readonly #unbegun: number[] = []
  /** Until then what it has started may be ending. */
  #processesEndMs = 0

  constructor(init: LaneInit) {
    this.#init = init
    const { index, port, bulk, settings, shared } = init
    adoptVariables(init.variables, init.secretNames)
    noteHiddenVariables(Object.keys(init.variables))
    this.#processes = new ChildProcesses(init.mark)
    // It binds the thread; `fork` would hand it on to a process, which would ask for commands.
    process.execArgv = process.execArgv.filter((flag) => flag !== '--interactive')
    const outbox = new Outbox(init.outbound, port, bulk)
    this.#outbox = outbox
    this.#heartbeat = new HeartbeatWriter(init.heartbeat, memoryLimits(settings.laneMemoryMb), this.#sharedBuffers)
    this.#flightFile = init.flightFile === null ? null : new FlightFile(init.flightFile, Buffer.from(init.flight))
    const recorder = new FlightRecorder(init.flight, this.#flightFile)
    this.#sayWhy = installExitReport(
      recorder,
      (isStopped) => this.#leave(isStopped),
      () => this.#inbox.skipStopped(),
    )
    const calls = new PrimaryCalls(outbox)
    this.#calls = calls
    const log = new ThreadLog(settings, (record, json) => {
      const isSent = outbox.sendText(KIND.LOG, 0, json)
      kernel.tellLogSinks(record)
      return isSent
    })
    const kernel: ThreadKernel = new ThreadKernel({
      thread: { kind: 'lane', index },
      settings,
      shared,
      flight: recorder,
      callPrimary: (tool, method, args) => calls.call(tool, method, args),
      onToolStatus: (tool, status, message, fault) => this.#post({ type: 'tool-status', tool, status, message, fault }),
      writeLog: log.write,
    })
    this.#kernel = kernel
    watchUnawaited(log.write, (plugin) => kernel.plugins.files[plugin])
    if (settings.nodeEnv !== 'production')
      watchUnseenVariables({
        names: Object.keys(init.variables),
        secrets: init.secretNames,
        fileOf: (plugin) => kernel.plugins.files[plugin],
        tell: (name, message, plugin) => this.#post({ type: 'unseen-variable', name, message, plugin }),
      })
    if (settings.nodeEnv !== 'production')
      watchEmptyAnswers(kernel.plugins.facts, (message, plugin) => log.write('WARNING', message, plugin))
    const steps = new RequestSteps(recorder)
    const replies = new RingReplies(outbox, steps, this.#builtins)
    this.#requests = new RequestServer(replies, kernel.logFault, steps)
    this.#requests.isSound = (origin) => this.#builtins.isSound(origin)
    this.#requests.isCompressing = settings.httpCompression
    const publisher = new RingPublisher(outbox)
    this.#publisher = publisher
    const threadStore = threadStoreOf(kernel)
    this.#log = threadStore
    const handOn = (event: EventFrame): void => publisher.stored(event)
    const services = servicesOver((method, args) => calls.call('#host', method, args))
    const isLogged = settings.eventBusDriver === 'database'
    const moved = (event: string, dueMs: number): void => this.#post({ type: 'event-moved', event, dueMs })
    this.#stored = new StorePublisher(threadStore, handOn, moved)
    const bus = new LaneBus(kernel, isLogged ? this.#stored : publisher, {
      services,
      log: threadStore,
      stored: this.#stored,
      handOn,
      post: (message) => this.#post(message),
    })
    this.#bus = bus
    bus.logFailedAttempts()
    bus.reportThrough(
      () => threadStore.opened(),
      (id) => this.#post({ type: 'reported', id }),
    )
    bus.events.isSound = this.#requests.isSound
    bus.events.mayBegin = () => threadStore.memory.isTrusted
    bus.events.onFailure = (failure, frame) => {
      const { requestId, trace } = frame
      bus.failedHere({ failure, ancestors: ancestorsBelow(frame), requestId, trace })
    }
    this.#host = new LaneHost(
      { kernel, server: this.#requests, bus, services, opened: () => threadStore.opened() },
      recorder,
      (message) => this.#post(message),
    )
    bus.events.transactions = this.#host.transactions
    this.#inbox = primaryInbox(init, outbox, {
      requests: this.#requests,
      events: bus.events,
      acknowledgements: new RingAcknowledgements(outbox, recorder, this.#builtins),
      publisher,
      calls,
      catchUp: () => this.#catchUp(),
      isLeaving: () => this.#settling !== null,
      giveBack: (deliveryId) => this.#giveBack(deliveryId),
    })
  }

  /** Boots, then serves until the primary ends the thread. Resolves when the boot has failed, which it reports. */
  async run(): Promise<void> {
    const { port, settings } = this.#init
    port.on('message', (message: ToLane | number) => {
      this.#builtins.isSound()
      if (typeof message === 'number') this.#inbox.drain()
      else this.#onMessage(message)
    })
    // The primary has given the lane up: nobody waits for anything of it. What ran there was stopped, if that was a native call.
    port.on('close', () => {
      this.#kernel.toolbox.stopped(undefined)
      this.#letGo()
    })
    this.#heartbeat.start()
    this.#sharedBuffers.watch()
    notePoolOrigins()
    this.#processes.watch((message) => this.#post(message))
    watchThreads((message) => {
      this.#processes.isUsed = true
      this.#post(message)
    })
    watchOpenFiles(this.#init.descriptors)
    const { guardian } = this.#init
    if (guardian !== null) watchGuardian(guardian, settings.shutdownDelayMs + settings.shutdownTimeoutMs)
    const startedMs = performance.now()
    try {
      const { toolbox, plugins } = this.#kernel
      if (this.#init.tracing !== null) await this.#openTracing(this.#init.tracing)
      if (this.#init.history !== null) this.#openHistory(this.#init.history)
      if (settings.eventBusDriver === 'keyvalue_streams') await this.#openStreams()
      await this.#host.install(activeTools(settings.toolsDir, settings.tools))
      if (staysInProcess(settings, toolbox.get('db'))) this.#bus.publisher = this.#publisher
      await toolbox.boot((tool, error) =>
        this.#host.writeLog('ERROR', `Tool ${tool} did not boot: ${messageOf(error)}`, tool),
      )
      const aftermath = new BootAftermath(() => this.#calls.open)
      const turns = new BootTurns(this.#heartbeat)
      plugins.runStage = (file, stage) => turns.run(file, stage)
      await plugins.boot({
        barred: this.#init.barred,
        waiting: this.#init.waiting,
        onNext: (file) => {
          this.#requireThread()
          turns.next(file)
          this.#booting(file)
        },
      })
      this.#requireThread()
      this.#booting(null)
      this.#builtins.remember()
      await aftermath.over(this.#init.aftermathMs)
      this.#requireThread()
      turns.over()
    } catch (error) {
      const broken = this.#firstBroken()
      this.#post({ type: 'boot-failed', message: broken?.message ?? messageOf(error), stack: stackOf(error) })
      return
    }
    const { health } = this.#kernel.plugins
    for (const [plugin, { status }] of Object.entries(health)) if (status !== 'OK') this.#host.drop(plugin)
    this.#kernel.isBooted = true
    this.#builtins.onChange = (change, origin) => this.#spoilt(change, origin)
    this.#builtins.watch()
    this.#history?.payloads?.prepare()
    // One lane of the process is enough.
    if (this.#init.index === 0 && this.#kernel.toolbox.get('db') !== undefined)
      this.#stopTrimming = keepTrimmed(this.#host.transactions, this.#init.settings.eventBusInboxKeepMs, (message) =>
        this.#kernel.writeLog('WARNING', message, 'event_bus'),
      )
    this.#post({
      type: 'manifest',
      bootMs: performance.now() - startedMs,
      manifest: {
        plugins: this.#kernel.plugins.health,
        faults: this.#kernel.plugins.faults,
        files: this.#kernel.plugins.files,
        routes: this.#host.routeManifests(),
        subscriptions: [...this.#bus.subscriptions].map(([subscriberIndex, subscription]) => ({
          ...subscription,
          subscriberIndex,
        })),
        jobs: this.#host.jobManifests(),
      },
    })
    await FOREVER
  }

  /** @param file null: all have booted */
  #booting(file: string | null): void {
    this.#flightFile?.booting(file)
    this.#post({ type: 'booting', file })
  }

  /** A plugin has replaced a builtin. Not in the midst of a frame: leaving reads the ring anew. */
  #spoilt(change: Change, origin: Origin | null): void {
    const cause = { eventId: null, requestId: null, trace: null, origin }
    causality.run(cause, () => this.#sayWhy({ kind: 'broken', ...change }))
    setImmediate(() => this.#leave())
  }

  /** What the plugin that boots has broken, which the report of the lane's end has then. */
  #firstBroken(): Change | null {
    const broken = this.#builtins.firstBroken()
    if (broken !== null) this.#sayWhy({ kind: 'broken', ...broken })
    return broken
  }

  /** @throws when a plugin that was booted has left a thread in which the others cannot boot */
  #requireThread(): void {
    const broken = this.#firstBroken()
    if (broken !== null) throw new Error(broken.message)
    const left = descriptorsLeft()
    if (left === 'many') return
    const message = 'no file descriptor is left (ulimit -n)'
    const origin = bootThatHoldsFiles()
    if (origin === null && left === 'few') return
    // Another lane has them. This one starts again.
    if (origin === null) this.#booting(null)
    else
      causality.run({ eventId: null, requestId: null, trace: null, origin }, () =>
        this.#sayWhy({ kind: 'throw', message, stack: '' }),
      )
    throw new Error(message)
  }

  /** Loaded on demand, like the streams: while tracing is off a lane loads no module of the SDK. */
  async #openTracing(init: RecordingInit): Promise<void> {
    const module = (await loadModule(TRACING_FILE)) as typeof import('../tracing/thread-tracing.ts')
    const tracing = new module.ThreadTracing(this.#init.settings, init)
    this.#tracing = tracing
    this.#bus.tracing = tracing
    this.#host.record(tracing)
  }

  /** It stands before the tracing, and passes everything on. */
  #openHistory(init: RecordingInit): void {
    this.#history = new ThreadHistory(this.#init.index, this.#init.settings, init, this.#tracing)
    this.#host.record(this.#history)
  }

  /** Loaded on demand: a lane that publishes elsewhere has no use for a client of the store. */
  async #openStreams(): Promise<void> {
    const module = (await loadModule(STREAMS_FILE)) as typeof import('../runtime/redis-streams/publisher.ts')
    this.#streams = new module.ThreadPublisher({
      settings: this.#init.settings,
      role: `lane ${this.#init.index}`,
      published: (frame) => this.#publisher.record(frame),
      refused: () => this.#bus.storeRefused(),
      log: (level, message, fields) => this.#host.writeLog(level, message, 'event_bus', fields),
    })
    const [stored, streams] = [this.#stored, this.#streams]
    this.#bus.publisher = { publish: (frame) => (staysInStore(frame) ? stored : streams).publish(frame) }
  }

  #post(message: ToPrimary): void {
    this.#init.port.postMessage(message)
  }

  // ── messages from the primary ─────────────────────────────────────────────

  /** Called while frames are read: the doorbell needs no answer. */
  #catchUp(): void {
    const { port } = this.#init
    for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) {
      const message = next.message as ToLane | number
      if (typeof message !== 'number') this.#onMessage(message)
    }
  }

  #onMessage(message: ToLane): void {
    switch (message.type) {
      case 'assign':
        return this.#assign(message.routes, message.mounts)
      case 'ready':
        void this.#kernel.plugins.ready([message.plugin], (plugin) => this.#post({ type: 'ready-done', plugin }))
        return
      case 'feed':
        this.#bus.fed(message.traces ?? [], message.failures ?? [])
        for (const record of message.logs ?? []) this.#kernel.tellLogSinks(record)
        return
      case 'snapshot':
        this.#host.dump = message.dump
        this.#bus.subscribersOf = message.subscribers
        return
      case 'job':
        void this.#runJob(message.run, message.job, message.of)
        return
      case 'job-lost':
        this.#host.loseJob(message.run, message.reason)
        return
      case 'store-write':
        void this.#writeLog(message.batch, message.changes)
        return
      case 'delivery-lost':
        return this.#bus.events.lose(message.delivery, message.reason)
      case 'pool-uses':
        return this.#post({ type: 'pool-uses', uses: poolUses() })
      case 'time-moved':
        return ringDue()
      case 'open-files':
        return this.#post({ type: 'open-files', holders: holdersOfFiles() })
      case 'drain':
        void this.#drain()
        return
      case 'leave':
        if (this.#settling !== null) this.#settle(this.#settling, true)
        this.#leave(message.isStopped)
    }
  }

  /**
   * The primary has given the routes their numbers.
   * @param numbers in the order of the routes; -1 for a route that was refused
   * @param mounts folders that plugins of the primary serve
   */
  #assign(numbers: readonly number[], mounts: readonly SharedMount[]): void {
    this.#host.routes.forEach(({ route }, n) => {
      if (numbers[n]! >= 0) this.#requests.add(numbers[n]!, route)
    })
    for (const { plugin, prefix, directory, numbers } of mounts) {
      const owner = { name: plugin, instance: undefined }
      mountEndpoints({ owner, prefix, directory }).forEach((endpoint, n) => {
        this.#requests.add(numbers[n]!, endpoint)
      })
    }
  }

  async #runJob(run: number, job: number, of: JobTime): Promise<void> {
    const error = await this.#host.runJob(run, job, of)
    // The lane is about to leave: another one runs it again.
    if (!this.#builtins.isSound()) return
    this.#post({ type: 'job-done', run, error })
  }

  async #writeLog(batch: number, changes: StoreChanges): Promise<void> {
    let error: string | null = null
    let answer: StoreAnswer = { promoted: [] }
    try {
      answer = await writeStoreChanges(this.#log.database, changes)
    } catch (thrown) {
      error = messageOf(thrown)
    }
    this.#post({ type: 'store-written', batch, error, answer })
  }

  /** The primary drains a lane when nothing is in flight there except streams, and files that have had their time. It has closed the lane's sockets by then: their last frames are on the way. */
  async #drain(): Promise<void> {
    this.#requests.closeStreams()
    this.#requests.stopFiles()
    const deadlineMs = steadyMs() + SETTLE_MS
    await until(() => this.#requests.sockets.size === 0, Math.min(deadlineMs, steadyMs() + SOCKETS_END_MS))
    // Nobody waits for their answers, but what they await may be native.
    const isSettling = this.#requests.settling()
    await until(() => !isSettling(), deadlineMs)
    this.#stopTrimming()
    await this.#kernel.stop()
    await this.#streams?.close()
    this.#letGo()
  }

  /**
   * Something in this lane ends it: it takes nothing more, its handlers settle, and its thread is gone when no native call of it is under way.
   * @param isStopped what runs is stopped when this returns
   * @returns false while it boots: the plugin that does this is to be left out
   */
  #leave(isStopped = false): boolean {
    if (!this.#kernel.isBooted) return false
    if (isStopped) this.#forgetStopped()
    // What has stopped its loop may have done so in the midst of a frame.
    this.#inbox.recover()
    this.#outbox.recover()
    if (this.#settling === null) {
      this.#settling = new ThreadsTime(SETTLE_MS)
      this.#post({ type: 'dying' })
      this.#requests.closeStreams()
      this.#settle(this.#settling, false)
    }
    return true
  }

  /** Not at once: a stop takes all microtasks with it that wait. @param isAgain a stop may have taken along what has let go */
  #settle(time: ThreadsTime, isAgain: boolean): void {
    setTimeout(() => void time.until(() => !this.#hasWork).then(() => this.#letGo(isAgain)), 0)
  }

  /** All of one turn of the loop together. */
  #giveBack(deliveryId: number): void {
    if (this.#unbegun.push(deliveryId) > 1) return
    setImmediate(() => this.#post({ type: 'unbegun', deliveries: this.#unbegun.splice(0) }))
  }

  /** What is stopped does not settle. The primary gives up a request of it. */
  #forgetStopped(): void {
    const context = causality.getStore()
    if (context?.eventId != null) this.#bus.events.stopped()
    else if (context?.origin != null) this.#host.jobStopped(context.origin)
    // Not at once: `process.exit` stops what runs after this.
    setTimeout(() => this.#kernel.toolbox.stopped(context), 0)
  }

  get #hasWork(): boolean {
    const { awaited, sockets } = this.#requests
    return awaited > 0 || sockets.size > 0 || this.#bus.events.inFlight > 0 || this.#host.jobsRunning > 0
  }

  #letGo(isAgain = false): void {
    const isFirst = !this.#hasLetGo
    if (!isFirst && (!isAgain || steadyMs() < this.#processesEndMs)) return
    this.#hasLetGo = true
    this.#requests.closeStreams()
    const leave = (): void =>
      letGo(() => {
        // Else the thread would end by itself, which nobody expects of it.
        this.#init.port.ref()
        this.#post({ type: 'drained' })
      })
    if (!this.#processes.isUsed || !isFirst) return leave()
    this.#processesEndMs = steadyMs() + ENDING_MAX_MS
    void this.#processes.end().then(leave)
  }
}

const FOREVER = new Promise<void>(() => {})
