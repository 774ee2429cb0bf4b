import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DEPLOY } from './manifests.ts'

/** A panel of the dashboard for Grafana, as far as tests look at it. */
export interface Panel {
  id: number
  type: string
  title: string
  gridPos: { h: number; w: number; x: number; y: number }
  datasource?: { type: string; uid: string }
  targets?: { refId: string; expr: string; datasource: { type: string; uid: string } }[]
}

export interface Dashboard {
  uid: string
  title: string
  schemaVersion: number
  panels: Panel[]
  templating: { list: { name: string; type: string; query: string | { query: string } }[] }
  annotations: { list: { name: string; expr: string; datasource: { uid: string } }[] }
}

export const GRAFANA_FILE = join(DEPLOY, 'grafana/heddle.json')

export const readDashboard = (): Dashboard => JSON.parse(readFileSync(GRAFANA_FILE, 'utf8')) as Dashboard

/** Every expression, with where it stands. */
export function expressionsOf({ panels, annotations }: Dashboard): { at: string; expr: string }[] {
  return [
    ...panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ refId, expr }) => ({ at: `${title} ${refId}`, expr })),
    ),
    ...annotations.list.map(({ name, expr }) => ({ at: `annotation ${name}`, expr })),
  ]
}

/** Names of the metrics in a text of PromQL. */
export const metricsIn = (text: string): string[] => [
  ...new Set(text.match(/\b(?:heddle|process)_[a-z_]+\b(?=[{[\s)]|$)/g) ?? []),
]
