// What several plugins of `/system` read of the configuration.
import { delimiter } from 'node:path'
import type { Tools } from '#heddle'

export function domainsDirsOf(config: Tools['config']): string[] {
  return config
    .get('DOMAINS_DIR', { default: 'domains' })
    .split(delimiter)
    .filter((folder) => folder.trim() !== '')
}

export const isProduction = (config: Tools['config']): boolean =>
  config.get('NODE_ENV', { default: 'development' }) === 'production'
