import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import {
  HeddleError,
  HttpError,
  plugin,
  type RequestDetail,
  type RequestSummary,
  type SourceLine,
  sourceAround,
} from '#heddle'
import { domainsDirsOf, isProduction } from '../configuration.ts'
import { filterOf } from '../requests/filter.ts'
import { type Outline, outlineOf } from '../requests/outline.ts'
import { type Why, whyOf } from '../requests/why.ts'

/** The project whose plugins run, for whoever works on it on this machine. */
interface Project {
  /** The folder to which places in stacks are relative. */
  root: string
  /** What its tests import. */
  testing: '#heddle/testing' | 'heddle/testing'
}

/** A request with why it has failed. In development with the code around that place, and where that code is. */
interface Explained extends RequestDetail {
  why: (Why & { source: SourceLine[] }) | null
  project: Project | null
}

/** Outlines in one answer. */
const OUTLINES_MAX = 60

const tags = ['system']
const list = {
  tags,
  summary: 'Requests and jobs, newest first',
  description:
    'The last `limit` (100), or those before the time `before`. Filters: `status` (`5xx`, `404`, `failed`, `open`, `unfinished`), `method`, `route`, `plugin`, `user`, `kind` (`request`, `job`), `job` (`<plugin>/<job>`: its runs), `noise` (`without`, `only`: what comes by the clock and went well), `replica`, `since`, `min_ms`, `text`.',
}
const outlines = {
  tags,
  summary: 'What some requests did over time, in short',
  description: 'Those with the `ids`, separated by commas.',
}
const detail = {
  tags,
  summary: 'A request or job with what it has caused',
  description: 'By the id of the request, of the job’s run or of an event.',
}

/** Lists the requests and jobs that the history keeps, and shows each with everything that it has caused. */
export default plugin(
  ({ http, registry, config }) => {
    const folders = domainsDirsOf(config).map((folder) => resolve(folder))
    /** Null in production: the reader's editor has other files. */
    const project = isProduction(config) ? null : projectHere()
    const read = (id: string): Promise<RequestDetail | null> => registry.getRequest(id).catch(explainOff)

    http.get(
      '/system/requests',
      list,
      async (query): Promise<RequestSummary[]> => registry.getRequests(filterOf(query)).catch(explainOff),
    )

    http.get('/system/requests/outlines', outlines, async ({ ids }): Promise<Record<string, Outline>> => {
      const wanted = String(ids ?? '')
        .split(',')
        .slice(0, OUTLINES_MAX)
      const found = await Promise.all(wanted.map(async (id) => [id, await read(id)] as const))
      return Object.fromEntries(found.flatMap(([id, request]) => (request === null ? [] : [[id, outlineOf(request)]])))
    })

    http.get('/system/requests/:id', detail, async ({ id }, context) => {
      const request = await read(id)
      if (request !== null) return explained(request, folders, project)
      context.setStatus(404)
      return { success: false, error: `Nothing is kept of ${id}` }
    })
  },
  { thread: 'primary' },
)

async function explained(
  request: RequestDetail,
  folders: readonly string[],
  project: Project | null,
): Promise<Explained> {
  const why = whyOf(request, folders)
  if (why === null) return { ...request, why, project }
  const source = why.place === null || project === null ? [] : await sourceAround(why.place)
  return { ...request, why: { ...why, source }, project }
}

/** @throws HttpError 404 where no history is kept */
function explainOff(error: unknown): never {
  if (error instanceof HeddleError && error.code === 'HISTORY_OFF') {
    throw new HttpError(404, error.message, { code: error.code })
  }
  throw error
}

function projectHere(): Project {
  return { root: process.cwd(), testing: nameHere() === 'heddle' ? '#heddle/testing' : 'heddle/testing' }
}

function nameHere(): unknown {
  try {
    return (JSON.parse(readFileSync('package.json', 'utf8')) as { name?: unknown }).name
  } catch {
    // Started in another folder: not in the repository.
    return null
  }
}
