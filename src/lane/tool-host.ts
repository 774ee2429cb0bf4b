// What a lane hosts: what its plugins register, until the primary knows it.

import type { LostReason } from '../contracts/event-bus.ts'
import type { Endpoint, StaticMount } from '../contracts/http.ts'
import type { LogSink } from '../contracts/logger.ts'
import type { SystemDump, ToolStatus } from '../contracts/registry.ts'
import type { JobTime } from '../contracts/scheduler.ts'
import type { Origin } from '../contracts/tracing.ts'
import { HeddleError } from '../core/errors/catalogue.ts'
import { mountEndpoints } from '../runtime/endpoint/files/static-files.ts'
import { ignoresHeaders, routeShapes } from '../runtime/endpoint/route.ts'
import { type HostParts, jobFault, runJob, ThreadHost } from '../runtime/host/host.ts'
import { RunningJob } from '../runtime/host/running-job.ts'
import { type FlightRecorder, STEP_JOB } from '../transport/memory/flight-recorder.ts'
import type { JobFault, JobManifest, RouteManifest, ToPrimary } from '../transport/messages.ts'

/** The host of a lane. Collects what plugins register, and reports it to the primary when the lane has booted. */
export class LaneHost extends ThreadHost {
  dump: SystemDump = { tools: {}, plugins: {}, lanes: {} }
  /** Runs of jobs that are under way, by number. */
  readonly #runningJobs = new Map<number, { origin: Origin; of: RunningJob }>()
  readonly #flight: FlightRecorder
  readonly #post: (message: ToPrimary) => void

  constructor(parts: HostParts, flight: FlightRecorder, post: (message: ToPrimary) => void) {
    super(parts)
    this.#flight = flight
    this.#post = post
  }

  protected numberOf({ method, path }: RouteManifest): number {
    const shapes = routeShapes(method, path)
    const isSame = (each: RouteManifest): boolean =>
      routeShapes(each.method, each.path).some((shape) => shapes.includes(shape))
    const first = this.routes.find(({ manifest }) => isSame(manifest))
    if (first !== undefined)
      throw new HeddleError('HTTP_ROUTE_TAKEN', `${method} ${path} is registered already by ${first.manifest.plugin}`)
    return -1
  }

  mountStatic(mount: StaticMount): void {
    for (const endpoint of mountEndpoints(mount)) this.addRoute(endpoint)
  }

  /** Runs one of its jobs. @param number as the primary knows it @returns why it failed, or null */
  async runJob(run: number, number: number, time: JobTime): Promise<JobFault | null> {
    const job = this.jobList[number]!
    const of = new RunningJob(job.name, time)
    let error: JobFault | null = null
    const step = this.#flight.begin(STEP_JOB, number, -1, '', Date.now())
    const origin = { plugin: job.owner.name, handler: job.name }
    this.#runningJobs.set(run, { origin, of })
    try {
      await runJob(job, of, this.server.tracing, origin)
    } catch (thrown) {
      error = { ...jobFault(job, thrown, this.kernel.plugins.facts), isLost: of.isLost }
    }
    this.#runningJobs.delete(run)
    of.ended()
    this.#flight.end(step, Date.now(), error !== null)
    return error
  }

  /** The handler of a run should end. */
  loseJob(run: number, reason: LostReason): void {
    this.#runningJobs.get(run)?.of.lose(reason)
  }

  /** The handler of a run was terminated. */
  jobStopped(handler: Origin): void {
    for (const [run, { origin }] of this.#runningJobs) if (origin === handler) this.#runningJobs.delete(run)
  }

  get jobsRunning(): number {
    return this.#runningJobs.size
  }

  /** The routes as the primary gets them: with what their hooks do, which are all known by now. */
  routeManifests(): RouteManifest[] {
    return this.routes.map(({ manifest, route }) => {
      const { hooks } = this.server
      const contract = hooks.contractOf(route) ?? manifest.contract
      const ignoresHeaders = route.kind === 'endpoint' && this.#ignoresHeaders(route)
      return { ...manifest, contract, ignoresHeaders, ignoresAddress: hooks.ignoresAddress(route) }
    })
  }

  jobManifests(): JobManifest[] {
    return this.jobList.map(({ owner, name, schedule, missed }) => ({ plugin: owner.name, name, schedule, missed }))
  }

  #ignoresHeaders(endpoint: Endpoint): boolean {
    if (this.kernel.settings.httpCompression || this.server.hooks.chainOf(endpoint) !== null) return false
    return ignoresHeaders(endpoint.handler, endpoint.options)
  }

  override addLogSink(sink: LogSink): () => void {
    const listen = (on: boolean): void => {
      if (!this.kernel.hasLogSinks) this.#post({ type: 'listen', feed: 'logs', on })
    }
    listen(true)
    const remove = super.addLogSink(sink)
    return () => {
      remove()
      listen(false)
    }
  }

  addRequestSink(): never {
    throw new TypeError(
      "registry.addRequestSink: only the primary sees all requests; set `thread: 'primary'`, in a class `static thread = 'primary'`",
    )
  }

  systemDump(): SystemDump {
    return structuredClone(this.dump)
  }

  updateToolStatus(tool: string, status: ToolStatus, message: string | null): void {
    this.#post({ type: 'set-tool', tool, status, message })
  }
}
