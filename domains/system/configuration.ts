// What several plugins of `/system` read of the configuration.
import { delimiter } from 'node:path'
import type { Tools } from '#heddle'

export function domainsDirsOf(config: Tools['config']): string[] {
  return config
    .get('DOMAINS_DIR', { default: 'domains' })
    .split(delimiter)
    .filter((folder) => folder.trim() !== '')
}

/** The history keeps a part of what went well. */
export const isSampleKept = (config: Tools['config']): boolean =>
  config.get('HISTORY_SAMPLE', { type: 'number', default: isProduction(config) ? 0.01 : 1 }) < 1

export const isProduction = (config: Tools['config']): boolean =>
  config.get('NODE_ENV', { default: 'development' }) === 'production'
