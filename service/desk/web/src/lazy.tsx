import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Failure, Loading } from "./ui";

// lazy is a view that is loaded when it is first shown, so that the first paint does not wait for all views.
export function lazy(load: () => Promise<{ default: ComponentType<any> }>): ComponentType<any> {
  let loaded: ComponentType<any> | undefined;
  return function Lazy(props) {
    const [, shown] = useState(() => loaded); // a component is a function, which useState would call
    const [failure, fail] = useState<unknown>();
    useEffect(() => {
      if (loaded) return;
      load().then((module) => {
        loaded = module.default;
        shown(() => loaded);
      }, fail);
    }, []);
    if (failure) return <Failure of={failure} />;
    return loaded ? <>{((View) => <View {...props} />)(loaded)}</> : <Loading />;
  };
}
