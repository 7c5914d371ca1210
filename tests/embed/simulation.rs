//! A host program: a simulation whose users write what happens in each step. The program owns the world and the clock;
//! the script sees the world as an object with methods, and may use tensors for its arithmetic.

use std::sync::{Arc, Mutex};
use std::time::Duration;
use tscript::{Object, Session, Tensor};

/// The world: bodies on a plane. What a script does to its copy, it does to the one world.
#[derive(Clone)]
struct World(Arc<Mutex<Bodies>>);

struct Bodies {
    positions: Vec<f32>,
    velocities: Vec<f32>,
    time: f64,
}

impl Object for World {
    const NAME: &'static str = "world";
}

impl World {
    fn with<R>(&self, work: impl FnOnce(&mut Bodies) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}

/// A session in which scripts know the type `world`.
fn session() -> Result<Session, tscript::Error> {
    Session::builder()
        .untrusted()
        .time_limit(Duration::from_secs(60))
        .object::<World>(|world| {
            world
                .getter("time", |world: &mut World| world.with(|bodies| bodies.time))
                .getter("positions", |world: &mut World| world.with(|bodies| plane(&bodies.positions)))
                .getter("velocities", |world: &mut World| world.with(|bodies| plane(&bodies.velocities)))
                .setter("velocities", |world: &mut World, to: Tensor| {
                    world.with(|bodies| match to.to_vec::<f32>() {
                        Ok(numbers) if numbers.len() == bodies.velocities.len() => {
                            bodies.velocities = numbers;
                            Ok(())
                        }
                        Ok(numbers) => Err(format!(
                            "there are {} bodies, and these are velocities for {}",
                            bodies.velocities.len() / 2,
                            numbers.len() / 2
                        )),
                        Err(error) => Err(error.message().to_string()),
                    })
                })
        })
        .build()
}

/// Numbers two by two.
fn plane(numbers: &[f32]) -> Result<Tensor, tscript::Error> {
    Tensor::from_slice(numbers, &[numbers.len() / 2, 2])
}

/// The program's loop: the user's `step` first, then everything moves.
fn simulate(script: &str, world: &World, steps: usize, dt: f64) -> Result<(), tscript::Error> {
    let mut session = session()?;
    session.run_str("rules.rhai", script)?;
    for _ in 0..steps {
        session.call::<()>("step", (world.clone(), dt))?;
        world.with(|bodies| {
            for (position, velocity) in bodies.positions.iter_mut().zip(&bodies.velocities) {
                *position += velocity * dt as f32;
            }
            bodies.time += dt;
        });
    }
    Ok(())
}

fn world() -> World {
    let positions = vec![1.0, 0.0, 0.0, 2.0, -0.5, 0.0];
    let velocities = vec![0.0; 6];
    World(Arc::new(Mutex::new(Bodies { positions, velocities, time: 0.0 })))
}

#[test]
fn users_script_the_steps() -> Result<(), tscript::Error> {
    let springs = r#"
        const STIFFNESS = 4.0;
        fn step(world, dt) {
            world.velocities = world.velocities - world.positions * (global::STIFFNESS * dt);
        }
    "#;
    let world = world();
    // A half turn of a spring with period pi.
    simulate(springs, &world, 1571, 0.001)?;
    let positions = world.with(|bodies| bodies.positions.clone());
    for (found, expected) in positions.iter().zip([-1.0, 0.0, 0.0, -2.0, 0.5, 0.0]) {
        assert!((found - expected).abs() < 0.02, "{positions:?}");
    }
    assert!((world.with(|bodies| bodies.time) - 1.571).abs() < 1e-9);
    Ok(())
}

#[test]
fn a_mistake_in_the_rules_names_its_line() {
    let wrong = "fn step(world, dt) {\n    let v = world.velocities;\n    world.velocities = v[0..2];\n}";
    let error = simulate(wrong, &world(), 3, 0.1).unwrap_err();
    assert_eq!(error.message(), "there are 3 bodies, and these are velocities for 2");
    let place = error.location().expect("a place in the script");
    assert_eq!((place.source.as_ref(), place.line), ("rules.rhai", 3));

    let endless = "fn step(world, dt) { loop { } }";
    assert_eq!(simulate(endless, &world(), 1, 0.1).unwrap_err().code(), "E0801");
}
