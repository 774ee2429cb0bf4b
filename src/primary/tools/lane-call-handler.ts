import type { ToolHost } from '../../contracts/tool.ts'
import type { TraceContext } from '../../core/causality/trace-context.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import type { PrimaryBus } from '../events/primary-bus.ts'

type RequestArgs = [
  emitter: string,
  event: string,
  payload: string,
  payloadKeys: string,
  parentId: string | null,
  requestId: string | null,
  trace: TraceContext,
  timeoutMs: number,
]

/** Answers the calls of the lanes' tool hosts (tool `#host` of a call): what they ask for is known only in the primary. */
export class LaneCallHandler {
  readonly #bus: PrimaryBus
  readonly #host: ToolHost

  constructor(bus: PrimaryBus, host: ToolHost) {
    this.#bus = bus
    this.#host = host
  }

  serve(method: string, args: readonly unknown[]): unknown {
    switch (method) {
      case 'request': {
        const [emitter, event, payload, payloadKeys, parentId, requestId, trace, timeoutMs] = args as RequestArgs
        return this.#bus.requestFor({ emitter, event, payload, payloadKeys, parentId, requestId, trace }, timeoutMs)
      }
      case 'history':
        return this.#bus.history()
      case 'topology':
        return this.#bus.topology()
      case 'deadLetters':
        return this.#bus.deadLetters()
      case 'replayDeadLetter':
        return this.#bus.replayDeadLetter(args[0] as string)
      case 'deleteDeadLetter':
        return this.#bus.deleteDeadLetter(args[0] as string)
      case 'jobs':
        return this.#host.jobs()
      case 'lanes':
        return this.#host.lanes()
      case 'readiness':
        return this.#host.readiness()
      case 'routeList':
        return this.#host.routeList()
    }
    throw new HeddleError('INTERNAL', `The primary has no service ${method}`)
  }
}
