import type { Endpoint, StaticMount } from '../../contracts/http.ts'
import type { RequestContext } from './context.ts'
import { StaticFiles } from './static-files.ts'

const SUMMARY = 'Files of a folder'
const DESCRIPTION = 'With its type, and a part of it where the client asks for one.'

/** The endpoints that serve a folder: what is under its prefix, and the prefix itself. */
export function mountEndpoints({ owner, prefix, directory }: StaticMount): Endpoint[] {
  const files = new StaticFiles(directory)
  const options = { summary: SUMMARY, description: DESCRIPTION }
  const rest: Endpoint = {
    owner,
    method: 'GET',
    path: `${prefix}/*`,
    handler: (data, context) => files.send(data, context as RequestContext),
    options,
    isFolder: true,
  }
  if (prefix === '') return [rest]
  const itself: Endpoint = {
    owner,
    method: 'GET',
    path: prefix,
    // Relative addresses of its pages need the slash.
    handler: (_data, context) => context.redirect(`${prefix}/`, 308),
    options,
    isFolder: true,
  }
  return [rest, itself]
}
