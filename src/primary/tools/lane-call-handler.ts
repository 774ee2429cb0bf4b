import type { DeadLetterPage } from '../../contracts/event-bus.ts'
import type { RequestFilter, WorkSpan } from '../../contracts/requests.ts'
import type { ToolHost } from '../../contracts/tool.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import type { EventRequest } from '../../transport/messages.ts'
import type { PrimaryBus } from '../events/primary-bus.ts'

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
        const { timeoutMs, ...request } = args[0] as EventRequest
        return this.#bus.requestFor(request, timeoutMs)
      }
      case 'history':
        return this.#bus.history()
      case 'topology':
        return this.#bus.topology()
      case 'deadLetters':
        return this.#bus.deadLetters(args[0] as DeadLetterPage | undefined)
      case 'replayDeadLetter':
        return this.#bus.replayDeadLetter(args[0] as string)
      case 'editDeadLetter':
        return this.#bus.editLetter(args[0] as string, args[1] as string, args[2] as string)
      case 'deleteDeadLetter':
        return this.#bus.deleteDeadLetter(args[0] as string)
      case 'jobs':
        return this.#host.jobs()
      case 'lanes':
        return this.#host.lanes()
      case 'readiness':
        return this.#host.readiness()
      case 'counters':
        return this.#host.counters()
      case 'routeList':
        return this.#host.routeList()
      case 'keptRequests':
        return this.#host.requests(args[0] as RequestFilter)
      case 'keptRequest':
        return this.#host.request(args[0] as string)
      case 'workReport':
        return this.#host.workReport(args[0] as WorkSpan)
    }
    throw new HeddleError('INTERNAL', `The primary has no service ${method}`)
  }
}
