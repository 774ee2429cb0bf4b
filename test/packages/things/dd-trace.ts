import tracer from 'dd-trace'

export default (get: (name: string) => string) => {
  const url = get('TRIAL_HTTP')
  return () => tracer.trace('weave', async () => (await fetch(`${url}/hello`)).json())
}
