import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import type { HttpLibrary } from './library.ts'
import { loadUws } from './uws-library.ts'

interface Choice {
  readonly library: HttpLibrary
  /** Why uWebSockets.js does not load; null when it does, or was not asked for. */
  readonly missing: string | null
}

/** @param wanted `HTTP_LISTENER`. @throws HTTP_LISTEN when uWebSockets.js is asked for and does not load */
export async function chooseLibrary(wanted: 'auto' | 'uws' | 'node'): Promise<Choice> {
  const loadNode = async (): Promise<HttpLibrary> => (await import('./node/node-library.ts')).loadNode()
  if (wanted === 'node') return { library: await loadNode(), missing: null }
  try {
    return { library: await loadUws(), missing: null }
  } catch (error) {
    const missing = messageOf(error).split('\n')[0]!
    if (wanted === 'auto') return { library: await loadNode(), missing }
    throw new HeddleError('HTTP_LISTEN', `HTTP_LISTENER=uws, and uWebSockets.js does not load here: ${missing}`)
  }
}
