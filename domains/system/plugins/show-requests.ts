import { resolve } from 'node:path'
import {
  type Data,
  HeddleError,
  type HttpContext,
  HttpError,
  Plugin,
  type RequestDetail,
  type RequestSummary,
  type SourceLine,
  sourceAround,
  type Tools,
} from '#heddle'
import { domainsDirsOf, isProduction } from '../configuration.ts'
import { filterOf } from '../requests/filter.ts'
import { type Outline, outlineOf } from '../requests/outline.ts'
import { type Project, projectHere } from '../requests/project.ts'
import { type Why, whyOf } from '../requests/why.ts'

/** A request with why it has failed. In development with the code around that place, and where that code is. */
interface Explained extends RequestDetail {
  why: (Why & { source: SourceLine[] }) | null
  project: Project | null
}

/** Outlines in one answer. */
const OUTLINES_MAX = 60

/** Lists the requests and jobs that the history keeps, and shows each with everything that it has caused. */
export default class ShowRequests extends Plugin {
  static override thread = 'primary' as const
  #http
  #registry
  #folders: string[]
  /** Null in production: the reader's editor has other files. */
  #project: Project | null

  constructor({ http, registry, config }: Tools) {
    super()
    this.#http = http
    this.#registry = registry
    this.#project = isProduction(config) ? null : projectHere()
    this.#folders = domainsDirsOf(config).map((folder) => resolve(folder))
  }

  override onBoot() {
    const tags = ['system']
    this.#http.addEndpoint('/system/requests', 'GET', this.list, {
      tags,
      summary: 'Requests and jobs, newest first',
      description:
        'The last `limit` (100), or those before the time `before`. Filters: `status` (`5xx`, `404`, `failed`, `open`, `unfinished`), `method`, `route`, `plugin`, `user`, `kind` (`request`, `job`), `noise` (`without`, `only`: what comes by the clock and went well), `replica`, `since`, `min_ms`, `text`.',
    })
    this.#http.addEndpoint('/system/requests/outlines', 'GET', this.outlines, {
      tags,
      summary: 'What some requests did over time, in short',
      description: 'Those with the `ids`, separated by commas.',
    })
    this.#http.addEndpoint('/system/requests/:id', 'GET', this.show, {
      tags,
      summary: 'A request or job with what it has caused',
      description: 'By the id of the request, of the job’s run or of an event.',
    })
  }

  async list(query: Data): Promise<RequestSummary[]> {
    return this.#registry.getRequests(filterOf(query)).catch(explainOff)
  }

  async outlines({ ids }: Data): Promise<Record<string, Outline>> {
    const wanted = String(ids ?? '')
      .split(',')
      .slice(0, OUTLINES_MAX)
    const found = await Promise.all(
      wanted.map(async (id) => [id, await this.#registry.getRequest(id).catch(explainOff)] as const),
    )
    return Object.fromEntries(found.flatMap(([id, request]) => (request === null ? [] : [[id, outlineOf(request)]])))
  }

  async show({ id }: Data, context: HttpContext) {
    const request = await this.#registry.getRequest(id).catch(explainOff)
    if (request !== null) return this.#explained(request)
    context.setStatus(404)
    return { success: false, error: `Nothing is kept of ${id}` }
  }

  async #explained(request: RequestDetail): Promise<Explained> {
    const why = whyOf(request, this.#folders)
    const project = this.#project
    if (why === null) return { ...request, why, project }
    const source = why.place === null || project === null ? [] : await sourceAround(why.place)
    return { ...request, why: { ...why, source }, project }
  }
}

/** @throws HttpError 404 where no history is kept */
function explainOff(error: unknown): never {
  if (error instanceof HeddleError && error.code === 'HISTORY_OFF') {
    throw new HttpError(404, error.message, { code: error.code })
  }
  throw error
}
