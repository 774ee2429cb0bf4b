import { InferenceSession, Tensor } from 'onnxruntime-node'

/** y = max(x, 0), of four numbers. */
const MODEL = 'CAg6MwoMCgF4EgF5IgRSZWx1EgFnWg8KAXgSCgoICAESBAoCCARiDwoBeRIKCggIARIECgIIBEICEA0='
const session = InferenceSession.create(Buffer.from(MODEL, 'base64'))

export default () => async () => {
  const x = new Tensor('float32', new Float32Array([-2, -1, 1, 2]), [4])
  return [...((await (await session).run({ x })).y!.data as Float32Array)]
}
